/* CHECK stays on in production; INVARIANT looks at whole objects and runs in tests and simulation. */
#ifndef SAGAD_BASE_CHECK_H
#define SAGAD_BASE_CHECK_H

#include <stddef.h>

/* Prints file, line and the broken condition on stderr and aborts: the crash path is the recovery path. */
_Noreturn void check_failed(const char *file, int line, const char *what);

#define CHECK(condition) ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition))
#define UNREACHABLE() check_failed(__FILE__, __LINE__, "unreachable")

#ifdef SAGAD_INVARIANTS
#define INVARIANT(condition) CHECK(condition)
#else
#define INVARIANT(condition) ((void)sizeof(condition))
#endif

#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF_LIKE(text_index, first) __attribute__((format(printf, text_index, first)))
#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define BIT(n) (UINT32_C(1) << (n))

#endif
