/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statx(2) where the C library does not have it (musl before 1.2.4). The kernel's own header
 * cannot be had beside <sys/stat.h>: both define the types of files.
 */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

#ifndef STATX_BASIC_STATS

#include <sys/syscall.h>
#include <unistd.h>

#define STATX_TYPE 0x1U
#define STATX_INO 0x100U
#define STATX_BASIC_STATS 0x7ffU
#define STATX_BTIME 0x800U
#define STATX_MNT_ID 0x1000U
#define STATX_ATTR_MOUNT_ROOT 0x2000
#define AT_STATX_DONT_SYNC 0x4000

struct statx_timestamp {
	int64_t tv_sec;
	uint32_t tv_nsec;
	int32_t reserved;
};

struct statx {
	uint32_t stx_mask, stx_blksize;
	uint64_t stx_attributes;
	uint32_t stx_nlink, stx_uid, stx_gid;
	uint16_t stx_mode, reserved;
	uint64_t stx_ino, stx_size, stx_blocks, stx_attributes_mask;
	struct statx_timestamp stx_atime, stx_btime, stx_ctime, stx_mtime;
	uint32_t stx_rdev_major, stx_rdev_minor, stx_dev_major, stx_dev_minor;
	uint64_t stx_mnt_id;
	uint64_t spare[13];
};
_Static_assert(sizeof(struct statx) == 256, "as the kernel has it");

static inline int statx(int dir, const char *path, int flags, unsigned mask, struct statx *ret)
{
	return (int)syscall(SYS_statx, dir, path, flags, mask, ret);
}

#endif
