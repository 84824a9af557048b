/* libmgba's own log. By default, libmgba prints it to stdout, which the program
 * uses for its own output. The shim drops it. */
#include "internal.h"

#include <mgba/core/log.h>

static void drop(struct mLogger* logger, int category, enum mLogLevel level, const char* format, va_list args) {
	UNUSED(logger);
	UNUSED(category);
	UNUSED(level);
	UNUSED(format);
	UNUSED(args);
}

static struct mLogger logger = { .log = drop };

void fw_log_off(void) {
	mLogSetDefaultLogger(&logger);
}
