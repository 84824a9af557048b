/* The text buffers that scripts get from console:createBuffer(). libmgba expects them from its front end, and calls a
 * null pointer if there are none. Here, text goes to a function. Only the cursor and the size are stored, because
 * scripts can read them. */
#ifndef FW_TEXT_BUFFER_H
#define FW_TEXT_BUFFER_H

#include "internal.h"

#include <mgba/core/scripting.h>
#if __has_include(<mgba/script/console.h>)
#include <mgba/script/console.h>
#endif

/* Owns all buffers of a script context. Scripts keep plain pointers to buffers and never free them. */
struct fw_text_buffers {
	void (*print)(void* user, const char* text);
	void* user;
	struct fw_text_buffer* first;
};

void fw_text_buffers_deinit(struct fw_text_buffers*);

/* An mScriptContextBufferFactory whose context is a struct fw_text_buffers*. */
struct mScriptTextBuffer* fw_text_buffer_create(void* buffers);

#endif
