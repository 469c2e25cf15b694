/* The parts of this room. Only the files of query/ look into it; the headers of the parts say what can be asked. */
#ifndef SAGAD_RUN_QUERY_QUERY_ROOM_H
#define SAGAD_RUN_QUERY_QUERY_ROOM_H

struct engine;

struct query_room {
    struct health *health;             /* health.c */
    struct saga_healths *saga_healths; /* saga_health.c */
    struct series *series;             /* series.c */
};

void query_room_init(struct engine *engine);
void query_room_fini(struct engine *engine); /* the store has closed */

#endif
