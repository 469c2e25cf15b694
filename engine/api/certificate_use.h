/*
 * Requests of clients that have shown a certificate (io/http/client_trust.h). Its rights are those of the row of the
 * tokens file that has one of its names.
 *
 * Whoever shows a token, a grant or a session asks for its rights, and gets no others by a certificate beside it. But a
 * certificate that is not good is refused whatever is beside it: somebody may have stolen both.
 */
#ifndef SAGAD_API_CERTIFICATE_USE_H
#define SAGAD_API_CERTIFICATE_USE_H

#include <stdbool.h>

struct api_request;
struct token;

/* The row of the certificate in `out`, NULL: none was shown, or no row has it. False: it was answered. */
bool certificate_find(struct api_request *request, const struct token **out);
/* Gives the request the rights of that row. False: it was answered. */
bool certificate_take(struct api_request *request, const struct token *token);
/* Is the certificate of a request that has its rights good no more? */
bool certificate_is_over(const struct api_request *request);

#endif
