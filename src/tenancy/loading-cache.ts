// Caches what is loaded from the database for a few seconds, so that a hit costs no promise and no query.

import type { Clock } from '../kernel/clock.ts'

export interface LoadingCacheOptions<Key, Value> {
  readonly clock: Clock
  /** How long a change made by another replica may go unnoticed. */
  readonly ttlMs: number
  readonly max: number
  load(key: Key): Promise<Value>
  /** Values that have a bound of their own, so that many of them cannot push out the others. */
  readonly separate?: { readonly max: number; has(value: Value): boolean }
}

interface Entry<Value> {
  readonly value: Value
  readonly loadedMs: number
}

export class LoadingCache<Key, Value> {
  readonly #options: LoadingCacheOptions<Key, Value>
  /** In the order of loading: the first is the oldest. */
  readonly #entries = new Map<Key, Entry<Value>>()
  readonly #separate = new Map<Key, Entry<Value>>()
  /** One query per key at a time, however many requests wait for it. */
  readonly #loading = new Map<Key, Promise<Value>>()

  constructor(options: LoadingCacheOptions<Key, Value>) {
    this.#options = options
  }

  /** Without a query. Not for separate values. */
  peek(key: Key): Value | undefined {
    const entry = this.#entries.get(key)
    return entry && this.#isFresh(entry) ? entry.value : undefined
  }

  /** A promise only if the value has to be loaded; it rejects as `load` does. */
  find(key: Key): Value | Promise<Value> {
    const entry = this.#entries.get(key) ?? this.#separate.get(key)
    if (entry && this.#isFresh(entry)) return entry.value
    return this.#loading.get(key) ?? this.#load(key)
  }

  delete(key: Key): void {
    this.#entries.delete(key)
    this.#loading.delete(key)
  }

  /** Which key a running query will match is unknown, so all of them are loaded again. */
  deleteWhere(matches: (value: Value) => boolean): void {
    this.#loading.clear()
    for (const [key, { value }] of this.#entries) if (matches(value)) this.#entries.delete(key)
  }

  #load(key: Key): Promise<Value> {
    // The age counts from the query: what is read may have changed before the result arrives.
    const loadedMs = this.#options.clock.monotonicMs()
    const loading = this.#options
      .load(key)
      .then((value) => {
        // Not cached if it was deleted meanwhile: the value may be older than the change.
        if (this.#loading.get(key) === loading) this.#put(key, { value, loadedMs })
        return value
      })
      .finally(() => {
        if (this.#loading.get(key) === loading) this.#loading.delete(key)
      })
    this.#loading.set(key, loading)
    return loading
  }

  #put(key: Key, entry: Entry<Value>): void {
    this.#entries.delete(key)
    this.#separate.delete(key)
    const { separate } = this.#options
    const isSeparate = separate?.has(entry.value) === true
    const entries = isSeparate ? this.#separate : this.#entries
    const max = isSeparate ? separate.max : this.#options.max
    entries.set(key, entry)
    // Removes expired entries too: they may hold secrets.
    for (const [oldest, old] of entries) {
      if (entries.size <= max && this.#isFresh(old)) break
      entries.delete(oldest)
    }
  }

  #isFresh({ loadedMs }: Entry<Value>): boolean {
    return this.#options.clock.monotonicMs() - loadedMs < this.#options.ttlMs
  }
}
