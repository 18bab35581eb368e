/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside: sandbox-exec has loaded the profile and become this program, which becomes the command.
 * Without it nobody could tell the command's exit status from that of a sandbox-exec which did
 * not like the profile, or did not find the command.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "sandbox/search.h"
#include "sandbox/seatbelt/internal.h"

_Noreturn void seatbelt_enter(char *const *words, char *const *env)
{
	struct error e = { .exit_code = SEATBELT_ENTERED };
	uint64_t fd;

	if (!words[0] || !words[1] || text_parse_u64(words[0], INT_MAX, &fd) < 0 ||
	    fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0 || fd_write_all((int)fd, &e, sizeof(e)) < 0)
		_exit(SEATBELT_FAILED);
	e = (struct error){ 0 };
	(void)sandbox_exec(words[1], words + 1, env, &e);
	(void)!write((int)fd, &e, sizeof(e));
	_exit(e.exit_code);
}
