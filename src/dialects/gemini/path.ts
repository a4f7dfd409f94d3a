// The address of a generateContent call holds what other dialects have in the body: the model, and what is wanted.

export interface CallPath {
  /** Decoded; model ids contain slashes. */
  readonly model: string
  /** `generateContent`, `streamGenerateContent`, `countTokens`, `embedContent` or `batchEmbedContents`. */
  readonly verb: string
  /** `alt=sse`; without it a stream is one JSON list. */
  readonly wantsEvents: boolean
}

const pattern = /\/models\/([^?#]+):([A-Za-z]+)\/?(?:\?([^#]*))?(?:#.*)?$/

/** undefined = not the address of a call. */
export function readCallPath(url: string): CallPath | undefined {
  const [, encoded, verb, query = ''] = pattern.exec(url) ?? []
  if (encoded === undefined || verb === undefined) return undefined
  return { model: decoded(encoded), verb, wantsEvents: new URLSearchParams(query).get('alt') === 'sse' }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    // Not the id of a model either; it is reported as an unknown one.
    return text
  }
}
