/* What a script gets from console:createBuffer(): libmgba leaves it to its
 * front end, and calls a null pointer when there is none. Here the text goes to
 * one function, and the cursor is kept so that a script finds it where it left
 * it. */
#ifndef FW_TEXT_BUFFER_H
#define FW_TEXT_BUFFER_H

#include "internal.h"

#include <mgba/core/scripting.h>
#if __has_include(<mgba/script/console.h>)
#include <mgba/script/console.h>
#endif

typedef void (*fw_print_fn)(void* user, const char* text);

/* Owns every buffer of one script context: scripts hold bare pointers to them
 * and never give them back. */
struct fw_text_buffers {
	fw_print_fn print;
	void* user;
	struct fw_text_buffer* first;
};

void fw_text_buffers_init(struct fw_text_buffers*, fw_print_fn, void* user);
void fw_text_buffers_deinit(struct fw_text_buffers*);

/* An mScriptContextBufferFactory whose context is a struct fw_text_buffers*. */
struct mScriptTextBuffer* fw_text_buffer_create(void* buffers);

#endif
