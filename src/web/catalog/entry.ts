// A model as the management API's catalog serves it. It is public: it contains no address and nothing of a credential.

import type { CatalogItem, ModelPrice } from '../../api/catalog.ts'

export interface CatalogEntry extends CatalogItem {
  /** Served with the workspace's own provider key; only known where the list is limited to a key or project. */
  readonly own_key?: boolean
}

export type CatalogRoute = CatalogItem['routes'][number]
export type Figures = NonNullable<CatalogRoute['first_event_ms']>
/** A price that applies until the next one. */
export type DatedPrice = ModelPrice['history'][number]

/** The address of a model's page; the id's slash is kept. */
export function modelPath(id: string): string {
  return `/catalog/${id.split('/').map(encodeURIComponent).join('/')}`
}

/** A source without its line: `built in`, `tollgate.yaml`. */
export function sourceFile(source: string): string {
  return source.replace(/:\d+$/, '')
}

/** Whether all its routes are the sandbox's. */
export function isSandbox({ routes }: CatalogEntry): boolean {
  return routes.length > 0 && routes.every(({ rehearsal }) => rehearsal)
}
