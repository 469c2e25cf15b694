/* One table: method, path, least role, query parameters, handler. What is not in it does not exist. */
#ifndef SAGAD_API_ROUTES_H
#define SAGAD_API_ROUTES_H

#include "api/auth.h"
#include "run/request/verbs.h"

struct api_request;

#define ROUTE_PARAMS_MAX 3

struct route {
    const char *method;
    const char *pattern; /* "/v1/sagas/{id}": a part in braces matches any one part that is not empty */
    enum role least;     /* unless it is a verb, whose row says it: route_least() */
    const char *query;   /* names allowed, separated by spaces; "tag.*" stands for all that begin so */
    void (*handle)(struct api_request *request);
    bool for_tools;           /* a token that is bound to tools may use it */
    bool takes_any_body;      /* the handler checks the type of the body itself */
    const struct verb *verb;  /* handle_change(); NULL: it changes nothing that exists */
    const char *act, *act_on; /* the act of a change that is no verb: what is written down, and its kind; see acts.c */
};

extern const struct route routes[];
extern const size_t route_count;

struct route_match {
    const struct route *route;             /* NULL: nothing matches */
    struct slice params[ROUTE_PARAMS_MAX]; /* the parts in braces, in order */
    bool path_known;                       /* the path exists, with other methods */
    char allow[64];                        /* methods of the path: "GET, HEAD, POST" */
};

/* HEAD is answered wherever GET is. */
void route_find(struct slice method, struct slice path, struct route_match *out);
/* The first two parts name a saga by its business id; the handler gets its id as the first part instead. */
bool route_is_by_business_id(const struct route *route);
enum role route_least(const struct route *route);
const char *route_query(const struct route *route); /* names, separated by spaces */
bool route_allows_query(const struct route *route, struct slice name);

#endif
