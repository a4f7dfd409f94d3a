// A model, its price and the routes that serve it, and the catalog of all models. Built-in entries and the configuration file
// use the same shapes.

import type { Price } from './price.ts'

export const modelTags = ['tools', 'vision', 'reasoning', 'json', 'caching', 'embeddings'] as const
export type ModelTag = (typeof modelTags)[number]

/** The kinds of input that a model may take. */
export const inputKinds = ['text', 'image', 'audio', 'video', 'pdf'] as const
export type InputKind = (typeof inputKinds)[number]

/** The order of routes with equal priority: shared by weight, cheapest for the operator first, or fastest first. */
export const routingPolicies = ['priority', 'cheapest', 'fastest'] as const
export type RoutingPolicy = (typeof routingPolicies)[number]

export interface RouteTimeouts {
  readonly connectMs: number
  readonly firstEventMs: number
  readonly idleMs: number
  /** Between two events of the answer; keep-alives do not count. */
  readonly contentIdleMs: number
  readonly totalMs: number
}

/** A model at a provider. */
export interface Route {
  readonly providerId: string
  /** The provider's name for the model. */
  readonly upstreamModel: string
  /** Lower is tried first; routes of one priority share the traffic by weight. */
  readonly priority: number
  readonly weight: number
  readonly timeouts: Partial<RouteTimeouts>
  /** What the operator pays there; undefined = unknown. Used for the order `cheapest` and the margin, never for a charge. */
  readonly cost?: Price | undefined
  /** Of that cost: `creator/model#1` if it is the price of the model, otherwise `creator/model#cost:provider/name#1`. */
  readonly costVersion?: string | undefined
}

export interface Model {
  /** `creator/model`, as callers send it and replies return it. */
  readonly id: string
  readonly ownedBy: string
  readonly name: string
  readonly contextTokens: number | undefined
  readonly maxOutputTokens: number | undefined
  /** The output cap on the chat surface if the caller sends none. */
  readonly defaultMaxTokens: number | undefined
  readonly tags: readonly ModelTag[]
  /** undefined = not priced, therefore not callable. */
  readonly price: Price | undefined
  readonly routes: readonly Route[]
  readonly routing: RoutingPolicy
  /** Call a second route if the first is slower than usual; the operator pays for both. */
  readonly hedge: boolean
  /** Whether to add cache marks for callers that set none; undefined = as the installation is set. */
  readonly cacheMarks?: boolean
  /** Ids of the models that answer, in this order, if every route of this one fails and the caller named no others. */
  readonly fallbacks: readonly string[]
  /** Types of provider-run tools, billed apart from tokens, that callers may use at the operator's expense. */
  readonly hostedTools: readonly string[]
  /** When the model was released, `YYYY-MM-DD` or `YYYY-MM`, if known. */
  readonly released: string | undefined
  /** One sentence about what it is for, if known. */
  readonly description?: string | undefined
  /** Up to when it was trained, `YYYY-MM-DD` or `YYYY-MM`, if known. */
  readonly knowledge?: string | undefined
  /** What its creator says it takes; undefined = unknown. */
  readonly input?: readonly InputKind[] | undefined
  /** The day its creator retires it, `YYYY-MM-DD`, if known. */
  readonly retires?: string | undefined
  /** `built in`, or the file and line of the entry. */
  readonly source: string
}

export interface Catalog {
  find(id: string): Model | undefined
  /** Sorted by id. */
  readonly models: readonly Model[]
}

export function createCatalog(models: Iterable<Model>): Catalog {
  const byId = new Map<string, Model>()
  for (const model of models) byId.set(model.id, model)
  const sorted = [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
  return { find: (id) => byId.get(id), models: sorted }
}
