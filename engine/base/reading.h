/*
 * The rules under which a definition is read. A definition keeps the reading that it was registered under for ever. A
 * rule that changes what the same text means gets a new number here, and registered definitions go on as before.
 */
#ifndef SAGAD_BASE_READING_H
#define SAGAD_BASE_READING_H

enum reading {
    READING_FIRST = 1,
    /*
     * A probe, a precheck or a `read` without a method sends GET. A tool without a body sends its arguments with POST,
     * PUT and PATCH. A value that a template puts into a URL is percent-encoded, and "." or ".." is no segment of a
     * path.
     */
    READING_SECOND = 2
};

#define READING_NEWEST READING_SECOND /* the reading of definitions that are registered now */

#endif
