/* SPDX-License-Identifier: Apache-2.0 */
/* Removing trees that somebody else filled, and may still be at work in. */
#pragma once

#include "base/macros.h"

/* A directory to be emptied, opened whatever its mode; -errno. No link is followed. */
int remove_open(int dir, const char *name) NODISCARD;

/*
 * Everything in the directory, to any depth and whatever its modes; the directory stays. Nothing
 * is reached by a path that could be changed meanwhile: each step goes from an open directory to
 * one name in it, and no symbolic link is followed. Takes the descriptor over; what cannot be
 * removed is left.
 */
void remove_contents(int dir);
