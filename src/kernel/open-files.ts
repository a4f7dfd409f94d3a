// How many connections the process may have, by the number of files that the system lets it open.

import { readFileSync } from 'node:fs'

/** Files that the process itself has open: about 30 with the embedded database, 40 with PostgreSQL and Redis. */
const ownFiles = 64

/**
 * Of clients, and again of providers. Without any file left, the process could not even accept a connection to refuse it, and
 * would try to without end.
 */
export function connectionsMax(): number {
  return Math.max(2, Math.floor((filesMax() - ownFiles) / 2))
}

function filesMax(): number {
  try {
    const [, files] = /^Max open files\s+([0-9]+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? []
    return files === undefined ? Number.POSITIVE_INFINITY : Number(files)
  } catch {
    // Not Linux.
    return Number.POSITIVE_INFINITY
  }
}
