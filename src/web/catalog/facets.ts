// The facets of the model list: what models can be filtered by, the values of a model, and their names.

import { parsePrice } from '../../kernel/money.ts'
import { blendedPrice, type CatalogEntry, creatorOf } from './entry.ts'
import { shortCount } from './format.ts'

/** In the order they are shown. */
export const facetNames = ['tag', 'modality', 'max_price', 'min_context', 'provider', 'creator', 'routes'] as const
export type FacetName = (typeof facetNames)[number]

/** How many models each value would leave. Values without a model are left out unless they are chosen. */
export type FacetCounts = Readonly<Record<FacetName, readonly (readonly [value: string, count: number])[]>>

export interface Facet {
  readonly label: string
  /** Several values may be chosen, and a model must have all of them; otherwise one at a time. */
  readonly isMulti: boolean
  /** The values to offer that the model has. */
  valuesOf(entry: CatalogEntry): readonly string[]
  has(entry: CatalogEntry, value: string): boolean
  /** The name of a value among its options. */
  nameOf(value: string): string
  /** The name of a chosen value on its own. */
  chipOf(value: string): string
  compare(a: readonly [value: string, count: number], b: readonly [value: string, count: number]): number
}

/** USD per million tokens. */
const priceSteps = ['0', '0.50', '2.00', '5.00', '15.00']
const parsedSteps = priceSteps.map(parsePrice)
const contextSteps = ['32000', '128000', '200000', '1000000']

const tagNames: Readonly<Record<string, string>> = {
  tools: 'Tools',
  vision: 'Image input',
  reasoning: 'Reasoning',
  json: 'JSON output',
  caching: 'Prompt caching',
  embeddings: 'Embeddings',
}

export function tagName(tag: string): string {
  return tagNames[tag] ?? tag
}

const modalities: Readonly<Record<string, string>> = {
  text: 'Text',
  image: 'Image input',
  audio: 'Audio input',
  video: 'Video input',
  pdf: 'PDF input',
  embeddings: 'Embeddings',
}

/** Tags that are shown as modalities. */
const modalityTags = ['vision', 'embeddings']

function modalitiesOf(entry: CatalogEntry): readonly string[] {
  return entry.tags.includes('embeddings') ? ['embeddings'] : inputOf(entry)
}

/** What its creator says it takes; otherwise what its capabilities and prices show. */
export function inputOf({ tags, price, input }: CatalogEntry): readonly string[] {
  const hasAudio = price !== null && price !== 'free' && price.audio_input !== undefined
  return input ?? ['text', ...(tags.includes('vision') ? ['image'] : []), ...(hasAudio ? ['audio'] : [])]
}

type Row = Omit<Facet, 'isMulti' | 'nameOf' | 'chipOf' | 'compare' | 'has'> &
  Partial<Pick<Facet, 'isMulti' | 'nameOf' | 'chipOf' | 'compare' | 'has'>>

function facet(row: Row): Facet {
  const nameOf = row.nameOf ?? ((value: string) => value)
  return {
    isMulti: false,
    has: (entry, value) => row.valuesOf(entry).includes(value),
    chipOf: nameOf,
    compare: ([a], [b]) => (a < b ? -1 : 1),
    ...row,
    nameOf,
  }
}

const byNumber: Facet['compare'] = ([a], [b]) => Number(a) - Number(b)
const byCount: Facet['compare'] = ([a, count], [b, other]) => other - count || (a < b ? -1 : 1)

const hasContext = ({ context_tokens }: CatalogEntry, step: string) => (context_tokens ?? 0) >= Number(step)

export const facets: Readonly<Record<FacetName, Facet>> = {
  tag: facet({
    label: 'Capabilities',
    isMulti: true,
    valuesOf: ({ tags }) => tags.filter((tag) => !modalityTags.includes(tag)),
    has: ({ tags }, value) => tags.includes(value),
    nameOf: tagName,
  }),
  modality: facet({
    label: 'Modality',
    isMulti: true,
    valuesOf: modalitiesOf,
    nameOf: (value) => modalities[value] ?? value,
    compare: ([a], [b]) => Object.keys(modalities).indexOf(a) - Object.keys(modalities).indexOf(b),
  }),
  max_price: facet({
    label: 'Blended price (3:1)',
    valuesOf(entry) {
      const price = blendedPrice(entry)
      return price === undefined ? [] : priceSteps.filter((_, at) => price <= (parsedSteps[at] ?? 0n))
    },
    has(entry, value) {
      const [price, most] = [blendedPrice(entry), parsePrice(value)]
      return price !== undefined && most !== undefined && price <= most
    },
    nameOf: (value) => (Number(value) === 0 ? 'Free' : `up to $${value}`),
    compare: byNumber,
  }),
  min_context: facet({
    label: 'Context',
    valuesOf: (entry) => contextSteps.filter((step) => hasContext(entry, step)),
    has: hasContext,
    nameOf: (value) => `${shortCount(Number(value))} or more`,
    chipOf: (value) => `context ${shortCount(Number(value))} or more`,
    compare: byNumber,
  }),
  provider: facet({
    label: 'Provider',
    valuesOf: ({ routes }) => [...new Set(routes.map(({ provider }) => provider))],
    chipOf: (value) => `provider ${value}`,
    compare: byCount,
  }),
  creator: facet({
    label: 'Creator',
    valuesOf: (entry) => [creatorOf(entry)],
    chipOf: (value) => `creator ${value}`,
    compare: byCount,
  }),
  routes: facet({
    label: 'Availability',
    valuesOf: ({ routes }) => (routes.length >= 2 ? ['2'] : []),
    nameOf: () => 'Several routes',
  }),
}
