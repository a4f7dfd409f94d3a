// The APIs that callers can use: their names, what can be asked of them, and what a path can name. Data only, because the
// browser loads it with the management API; the code of each is in registry.ts.

/** The APIs that callers can use, by the names that the management API has for them. The first one is the default. */
export const surfaceNames = ['chat', 'messages', 'responses', 'gemini'] as const
export type SurfaceName = (typeof surfaceNames)[number]

/** What callers can ask of a surface with a body. */
export const operations = ['generate', 'countTokens', 'compact', 'embed'] as const
export type Operation = (typeof operations)[number]

/** A path that names a model. */
export interface ModelPath {
  /** As it was sent; empty = the path is the list of models. */
  readonly encodedModel: string
  /** Absent = the path is the model itself. */
  readonly operation?: Operation | undefined
}
