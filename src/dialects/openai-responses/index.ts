// OpenAI's Responses, as we speak it to providers. No caller speaks it, so there is nothing here to serve one. Nothing is
// kept at the provider: each request carries the whole conversation, its reasoning sealed.

import type { UpstreamDialect } from '../dialect.ts'
import { readFault } from './failure.ts'
import { parseStream } from './parse-stream.ts'
import { renderRequest } from './render-request.ts'
import { replyAsStream } from './reply-as-stream.ts'

export const openaiResponses: UpstreamDialect = {
  id: 'openai-responses',
  generationPath: () => '/responses',
  replyAsStream,
  readFault,
  translation: { renderRequest, parseStream },
}
