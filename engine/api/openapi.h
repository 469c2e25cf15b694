/* schema/openapi.json, compiled in (openapi.S.in). */
#ifndef SAGAD_API_OPENAPI_H
#define SAGAD_API_OPENAPI_H

extern const char api_openapi[], api_openapi_end[];

#endif
