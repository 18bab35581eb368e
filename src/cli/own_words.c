/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "mcp/serve.h"
#include "supervise/attack.h"

bool own_word(char *const *argv, char *const *environ_in, int *ret_status)
{
	(void)environ_in;
	/* `check --attack` */
	if (strcmp(argv[1], ATTACK_PROBES_WORD) == 0)
		*ret_status = attack_probes(argv + 2, STDOUT_FILENO);
	/* the MCP server, inside a sandbox */
	else if (strcmp(argv[1], MCP_UNPACK_WORD) == 0)
		*ret_status = mcp_unpack(argv + 2);
	else
		return false;
	return true;
}
