/* SPDX-License-Identifier: Apache-2.0 */
/* What may be said about containers in settings. */
#pragma once

#include "base/error.h"

/* May this argument be given to the container engine? "--runtime=runc": one word, with its value. */
int container_check_argument(const char *text, struct error *e) NODISCARD;
/* Could this be the name of an image? It is given to the engine as a word of its own. */
int container_check_image(const char *text, struct error *e) NODISCARD;
