// The models that come with the gateway, read from models.json, which scripts/write-catalog.ts writes: nobody edits it,
// and nothing here asks the network. Entries are what anybody could write in the configuration file.

import type { ModelEntry } from '../entry.ts'
import models from './models.json' with { type: 'json' }

/** Where a fact is from and the day somebody last looked there, `YYYY-MM-DD`. */
export interface Origin {
  readonly source: string
  readonly checked: string
}

export interface BuiltInModel extends ModelEntry {
  /** The day its creator switches it off, `YYYY-MM-DD`; undefined = none is known. */
  readonly retires?: string
  readonly provenance: {
    /** Context, caps, tags and dates. */
    readonly facts: Origin
    readonly price: Origin
  }
}

// A test holds every line against the schema, so that a start need not.
export const builtInModels: readonly BuiltInModel[] = models as unknown as readonly BuiltInModel[]
