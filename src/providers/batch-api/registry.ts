// The APIs for batches, by the dialect of the endpoint. A dialect that is missing has none that the gateway knows.

import type { DialectId } from '../../dialects/dialect.ts'
import type { Endpoint } from '../provider.ts'
import type { BatchApi } from './batch-api.ts'
import { fileBatches } from './file-batches.ts'
import { messageBatches } from './message-batches.ts'

const batchApis: Readonly<Partial<Record<DialectId, BatchApi>>> = {
  'openai-chat': fileBatches,
  'openai-responses': fileBatches,
  'anthropic-messages': messageBatches,
}

/** Hosts that wrap the dialect or sign their calls have batches of their own kind, if any. */
export function batchApiOf(endpoint: Endpoint): BatchApi | undefined {
  const isPlain = endpoint.wrapping === undefined && endpoint.sign === undefined
  return isPlain ? batchApis[endpoint.dialect] : undefined
}
