/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * In the last register of a call that does not use it: the broker is not to be asked. With it the
 * filter lets the call go to the kernel, where Landlock refuses what is not granted directly. So it
 * opens nothing, whoever uses it; it only says that a refusal is not wanted to be performed.
 */
#define DIRECT_MARK 0x616d62697420676fu
