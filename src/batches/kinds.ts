// What the lines of batches can ask for: the paths, and how requests to each are read and run.

import { surfaces } from '../dialects/registry.ts'
import type { Operation } from '../dialects/surface.ts'
import { assert } from '../kernel/failure.ts'
import type { RequestKind } from '../pipeline/expected-cost.ts'
import type { BatchSurface } from '../tenancy/batches.ts'

export interface BatchKind extends RequestKind {
  readonly surfaceOfBatch: BatchSurface
  readonly operation: Extract<Operation, 'generate' | 'embed'>
}

const { chat, responses, messages } = surfaces
const { embeddings } = chat.dialect
assert(embeddings, 'the chat surface has embeddings')
const json = { 'content-type': 'application/json' }

const files = { surfaceOfBatch: 'chat', operation: 'generate', headers: new Headers(json) } as const

/** By their path. */
export const batchKinds: ReadonlyMap<string, BatchKind> = new Map(
  [
    { ...files, surface: chat.dialect, url: '/v1/chat/completions', readEnvelope: chat.dialect.readEnvelope },
    { ...files, surface: responses.dialect, url: '/v1/responses', readEnvelope: responses.dialect.readEnvelope },
    {
      ...files,
      operation: 'embed' as const,
      surface: chat.dialect,
      url: '/v1/embeddings',
      readEnvelope: embeddings.readEnvelope,
    },
    {
      surfaceOfBatch: 'messages' as const,
      operation: 'generate' as const,
      headers: new Headers({ ...json, 'anthropic-version': '2023-06-01' }),
      surface: messages.dialect,
      url: '/v1/messages',
      readEnvelope: messages.dialect.readEnvelope,
    },
  ].map((kind) => [kind.url, kind]),
)

export function kindOf(endpoint: string): BatchKind {
  const kind = batchKinds.get(endpoint)
  assert(kind, 'a batch has a known endpoint')
  return kind
}
