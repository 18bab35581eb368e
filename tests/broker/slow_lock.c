/* SPDX-License-Identifier: Apache-2.0 */
/* A broker that waits for the lock of all brokers until AMBIT_TEST_GO is there. */
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#define PATIENCE 10000 /* milliseconds */

int __wrap_flock(int fd, int operation);
int __real_flock(int fd, int operation);

int __wrap_flock(int fd, int operation)
{
	const char *go = getenv("AMBIT_TEST_GO");

	for (int i = 0; go && operation == LOCK_EX && i < PATIENCE && access(go, F_OK) < 0; i++)
		(void)usleep(1000);
	return __real_flock(fd, operation);
}
