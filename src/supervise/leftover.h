/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the run left behind, looked at when it is over: of the files that were told as
 * running later, those that really would. They are the command's: read as plain files
 * only, up to a maximum, and searched, not parsed.
 */
#pragma once

#include <stdbool.h>

#include "supervise/report.h"

/* Is the entry of report->later still worth telling? Its reason may become a better one. */
bool leftover_matters(struct arena *a, struct report_entry *entry);
