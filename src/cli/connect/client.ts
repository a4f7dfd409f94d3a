// What `tollgate connect` knows of one client: which members of which settings file point it at the gateway, or what a
// person has to type where there is no such file.

import type { ClientSettings } from '../../config/client-settings.ts'
import type { JsonObject } from '../json-members.ts'

/** A member of a JSON file by its path, and the value it gets. */
export interface Member {
  readonly path: readonly string[]
  readonly value: unknown
  /** For a member that people also set themselves: whether a value is one that was written here. Absent = always. */
  isOurs?(value: unknown): boolean
}

export interface ConnectFacts {
  /** The gateway's root. */
  readonly url: string
  /** The secret, or a stand-in where it is only shown. */
  readonly key: string
  /** Callable models of the catalog. */
  readonly models: readonly JsonObject[]
  /** What was asked for; undefined = choose. */
  readonly model: string | undefined
}

export type Client = { readonly id: string; readonly title: string } & (
  | {
      readonly kind: 'file'
      file(settings: ClientSettings): string
      members(facts: ConnectFacts): readonly Member[]
      /** What to do next, and what to know. */
      notes(facts: ConnectFacts): readonly string[]
    }
  | { readonly kind: 'by hand'; steps(facts: ConnectFacts): readonly string[] }
  | { readonly kind: 'unsupported'; readonly reason: string }
)
