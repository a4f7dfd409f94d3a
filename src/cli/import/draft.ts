// A draft of a configuration file: what an importer found, as entries of tollgate.yaml, and the names of what it could not
// import. Keys are replaced by references to variables; their values are kept separately.

import { stringify } from 'yaml'
import { builtInModels } from '../../catalog/data/built-in.ts'
import { fallbacksMax, type ModelEntry } from '../../catalog/entry.ts'
import { builtInProviders } from '../../providers/data/built-in.ts'

export interface NotCarried {
  /** `model_list[3].litellm_params.rpm` */
  readonly what: string
  readonly why: string
}

export interface ProviderDraft {
  readonly id: string
  readonly dialect: string
  readonly base_url: string
  readonly api_key?: string
}

export type RouteDraft = ModelEntry['routes'][number]

export type Facts = Pick<
  ModelEntry,
  'price' | 'context_tokens' | 'max_output_tokens' | 'default_max_tokens' | 'tags' | 'owned_by' | 'name' | 'released'
>

interface ModelDraft {
  readonly facts: Facts
  readonly routes: RouteDraft[]
  routing?: string
  fallbacks?: readonly string[]
}

export class Draft {
  readonly providers: ProviderDraft[] = []
  readonly models = new Map<string, ModelDraft>()
  readonly aliases: Record<string, string> = {}
  readonly settings: Record<string, unknown> = {}
  readonly notCarried: NotCarried[] = []
  /** Variables to set, and the value if the source has it. */
  readonly variables = new Map<string, { readonly value?: string; readonly note?: string }>()

  leave(what: string, why: string): void {
    this.notCarried.push({ what, why })
  }

  needs(variable: string, more: { readonly value?: string; readonly note?: string } = {}): void {
    if (!this.variables.has(variable) || more.value !== undefined) this.variables.set(variable, more)
  }

  /** The id of an entry with this address and key, new or made before. */
  provider(wanted: ProviderDraft): string {
    const same = this.providers.find(
      ({ dialect, base_url, api_key }) =>
        dialect === wanted.dialect && base_url === wanted.base_url && api_key === wanted.api_key,
    )
    if (same) return same.id
    const taken = (id: string) =>
      this.providers.some((each) => each.id === id) || builtInProviders.some((each) => each.id === id)
    let id = wanted.id
    for (let number = 2; taken(id); number++) id = `${wanted.id}-${number}`
    this.providers.push({ ...wanted, id })
    return id
  }

  /** Adds a route to the model that callers know by this name. */
  route(name: string, route: RouteDraft, facts: Facts): void {
    const id = modelId(name)
    const known = this.models.get(id)
    const isPriced = known?.facts.price !== undefined
    this.models.set(id, { ...known, facts: isPriced ? known.facts : facts, routes: [...(known?.routes ?? []), route] })
    if (isPriced && facts.price !== undefined && !Bun.deepEquals(known.facts.price, facts.price)) {
      const advice = 'write this one as cost of the route, if you pay it there'
      this.leave(`price of ${id} at ${route.provider}`, `a model has one price; ${advice}`)
    }
    if (id !== name) this.aliases[name] = id
  }

  /** The model of this name, if it was imported. */
  idOf(name: string): string | undefined {
    return this.aliases[name] ?? (this.models.has(name) ? name : undefined)
  }

  /** Sets the fallbacks of a model, which has no more than it may have. */
  fallBack(id: string, ids: readonly string[]): void {
    const model = this.models.get(id)
    if (!model || ids.length === 0) return
    model.fallbacks = ids.slice(0, fallbacksMax)
    for (const left of ids.slice(fallbacksMax)) {
      this.leave(`fallback of ${id} to ${left}`, `a model has at most ${fallbacksMax}`)
    }
  }

  /** The same name for a model that is built in. */
  alias(name: string, id: string): void {
    if (name !== id) this.aliases[name] = id
  }

  text(command: string): string {
    const models = [...this.models].map(([id, { facts, routes, routing, fallbacks }]) => {
      if (facts.price === undefined) {
        const advice = 'add price (price: free for a server of your own), or run tollgate prices set'
        this.leave(`price of ${id}`, `unknown, and a model without one cannot be called: ${advice} ${id}`)
      }
      return { id, ...facts, ...(routing && { routing }), ...(fallbacks && { fallbacks }), routes }
    })
    const document = {
      ...this.settings,
      ...(this.providers.length > 0 && { providers: this.providers }),
      ...(models.length > 0 && { models }),
      ...(Object.keys(this.aliases).length > 0 && { aliases: this.aliases }),
    }
    return `# Made by \`${command}\`. Keys are in variables.\n${stringify(document, { lineWidth: 120, aliasDuplicateObjects: false })}`
  }
}

/** Ids have the form creator/model; other names get one, and stay as aliases. */
function modelId(name: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}\/[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}$/.test(name)) return name
  const plain = name.replace(/[^A-Za-z0-9._:@+-]+/g, '-').replace(/^[^A-Za-z0-9]+/, '')
  return `imported/${plain.slice(0, 128) || 'model'}`
}

export function providerId(text: string): string {
  const plain = text.toLowerCase().replace(/[^a-z0-9]+/g, '-')
  return plain.replace(/^-+|-+$/g, '').slice(0, 60) || 'imported'
}

export function variableName(text: string): string {
  return `${text.toUpperCase().replace(/[^A-Z0-9]+/g, '_')}_API_KEY`
}

/** The built-in model that a provider calls by this name; without a provider, by its bare name. */
export function findBuiltIn(upstream: string, provider?: string) {
  const bare = (text: string) => text.slice(text.lastIndexOf('/') + 1).replace(/[-@]20\d{2}-?\d{2}-?\d{2}.*$/, '')
  return (
    builtInModels.find(({ routes }) => routes.some((each) => each.provider === provider && each.model === upstream)) ??
    (provider === undefined ? builtInModels.find(({ id }) => bare(id) === bare(upstream)) : undefined)
  )
}

/** The known facts about a model of this name, for a separate entry. */
export function factsOf(upstream: string): Facts {
  const known = findBuiltIn(upstream)
  if (!known) return {}
  const { price, context_tokens, max_output_tokens, default_max_tokens, tags } = known
  return JSON.parse(JSON.stringify({ price, context_tokens, max_output_tokens, default_max_tokens, tags })) as Facts
}
