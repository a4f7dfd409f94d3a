// The built-in models, from models.json, which scripts/write-catalog.ts generates; do not edit it. Entries have the form of
// the configuration file.

import type { ModelEntry } from '../entry.ts'
import models from './models.json' with { type: 'json' }
import { sandboxModels } from './sandbox.ts'

/** The source of a fact and the day it was last checked, `YYYY-MM-DD`. */
export interface Origin {
  readonly source: string
  readonly checked: string
}

export interface BuiltInModel extends ModelEntry {
  readonly provenance: {
    /** Context, caps, tags and dates. */
    readonly facts: Origin
    readonly price: Origin
    /** If the price has service tiers. */
    readonly tiers?: Origin
  }
}

// A test checks every entry against the schema, so that startup need not.
export const builtInModels: readonly BuiltInModel[] = models as unknown as readonly BuiltInModel[]

/** Also those of the sandbox: all models that need no entry in the configuration file. */
export const allBuiltInModels: readonly ModelEntry[] = [...sandboxModels, ...builtInModels]

/** How the price list genai-prices names providers, where that is not their id here. */
export const listedProviders: Readonly<Record<string, string>> = { moonshotai: 'moonshot', 'x-ai': 'xai' }
