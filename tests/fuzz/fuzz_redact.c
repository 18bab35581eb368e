/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text through the redactor: what is clean stays as it is, a marked secret put behind
 * anything is gone, and JSON stays JSON.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "audit/redact.h"
#include "base/json_read.h"

#define SECRET "hunter2hunter2"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void clean(const struct buf *in, struct buf *out)
{
	redact_text(buf_str(in), in->len, out);
}

static void check_json(const struct buf *text)
{
	_cleanup_buf_ struct buf once = BUF_INIT(BUF_MAX_TEXT), twice = BUF_INIT(BUF_MAX_TEXT);
	struct json_span value;

	if (redact_json(buf_str(text), text->len, &once) < 0)
		return;
	if (json_parse(buf_str(&once), once.len, &value) < 0 ||
	    redact_json(buf_str(&once), once.len, &twice) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	_cleanup_buf_ struct buf in = BUF_INIT(BUF_MAX_TEXT), once = BUF_INIT(BUF_MAX_TEXT);
	_cleanup_buf_ struct buf twice = BUF_INIT(BUF_MAX_TEXT), planted = BUF_INIT(BUF_MAX_TEXT);

	if (len > 1 << 14 || memchr(data, '\0', len) || memmem(data, len, SECRET, strlen(SECRET)))
		return 0;
	buf_append(&in, data, len);
	clean(&in, &once);
	clean(&once, &twice);
	if (once.len > in.len + 16 * len || twice.len > once.len + 16 * once.len)
		abort();
	check_json(&in);
	buf_puts(&in, "\n PASSWORD=" SECRET "\n");
	clean(&in, &planted);
	if (memmem(buf_str(&planted), planted.len, SECRET, strlen(SECRET)))
		abort();
	return 0;
}
