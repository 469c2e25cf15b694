/* Where an adapter puts the idempotency key. It has its own file because definitions name it too. */
#ifndef SAGAD_BASE_KEY_PLACE_H
#define SAGAD_BASE_KEY_PLACE_H

enum key_place { KEY_PLACE_DEFAULT, KEY_PLACE_HEADER, KEY_PLACE_BODY, KEY_PLACE_QUERY, KEY_PLACE_ENV, KEY_PLACE_META };

#endif
