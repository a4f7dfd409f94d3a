// Remembers looked-up keys for a few seconds, by the whole verifier, so that a hit costs no promise and no query.
// Unknown keys are remembered apart and bounded apart: a flood of invented ones cannot push out those in use.

import type { Clock } from '../kernel/clock.ts'
import type { KeyId, ProjectId, WorkspaceId } from '../kernel/ids.ts'
import type { FindKey, StoredKey } from './find-key.ts'

/** About 1 KB each, 10 MB in all; a key with the longest lists of its own takes some 20 KB. */
const knownMax = 10_000
const unknownMax = 10_000

export interface KeyCacheOptions {
  readonly load: FindKey
  readonly clock: Clock
  /** How long a change made elsewhere may go unnoticed. */
  readonly ttlMs: number
}

export interface KeyCache {
  /**
   * undefined = no such key. A promise only when the database has to be asked; `previous` is computed only then: what
   * the verifier was under the pepper that a rotation of the master secret leaves behind.
   */
  find(verifier: string, previous?: () => string): StoredKey | undefined | Promise<StoredKey | undefined>
  /** What is remembered of a key that exists, without a query. */
  peek(verifier: string): StoredKey | undefined
  /** Of a key, or of all keys of a project or workspace. */
  invalidate(id: KeyId | ProjectId | WorkspaceId): void
  /** Of every key that exists. */
  invalidateAll(): void
}

interface Entry {
  readonly key: StoredKey | undefined
  readonly loadedMs: number
}

export function createKeyCache({ load, clock, ttlMs }: KeyCacheOptions): KeyCache {
  const known = new Map<string, Entry>()
  const unknown = new Map<string, Entry>()
  /** One query per key at a time, however many requests wait for it. */
  const loading = new Map<string, Promise<StoredKey | undefined>>()

  function startLoading(verifier: string, previous: (() => string) | undefined): Promise<StoredKey | undefined> {
    // The age counts from the question, not from the answer: what is read may have changed while it travelled.
    const loadedMs = clock.monotonicMs()
    const answer = load(verifier, previous?.())
      .then((key) => {
        // Not remembered if an invalidation came in between: the answer may be from before it.
        if (loading.get(verifier) === answer) remember(verifier, { key, loadedMs })
        return key
      })
      .finally(() => {
        if (loading.get(verifier) === answer) loading.delete(verifier)
      })
    loading.set(verifier, answer)
    return answer
  }

  function remember(verifier: string, entry: Entry): void {
    known.delete(verifier)
    unknown.delete(verifier)
    if (entry.key === undefined) put(unknown, verifier, entry, unknownMax)
    else put(known, verifier, entry, knownMax)
  }

  const isYoung = ({ loadedMs }: Entry): boolean => clock.monotonicMs() - loadedMs < ttlMs

  return {
    peek(verifier) {
      const entry = known.get(verifier)
      return entry !== undefined && isYoung(entry) ? entry.key : undefined
    },
    find(verifier, previous) {
      const entry = known.get(verifier) ?? unknown.get(verifier)
      if (entry !== undefined && isYoung(entry)) return entry.key
      return loading.get(verifier) ?? startLoading(verifier, previous)
    },
    invalidate(id) {
      // Whom a running query is about is not known yet, so all of them are asked again.
      loading.clear()
      for (const [verifier, { key }] of known) {
        if (key === undefined) continue
        const { keyId, projectId, workspaceId } = key.caller
        if (keyId === id || projectId === id || workspaceId === id) known.delete(verifier)
      }
    },
    invalidateAll() {
      loading.clear()
      known.clear()
    },
  }
}

/** A Map iterates in the order of insertion, and entries live seconds: the first is the oldest and goes. */
function put(entries: Map<string, Entry>, verifier: string, entry: Entry, max: number): void {
  if (entries.size >= max) {
    const oldest = entries.keys().next()
    if (!oldest.done) entries.delete(oldest.value)
  }
  entries.set(verifier, entry)
}
