// OpenAI's Responses, used for calling providers only. The client side will be request/parse.ts and reply/render.ts.
// Nothing is stored at the provider: each request carries the whole conversation, with its reasoning encrypted.

import type { UpstreamDialect } from '../dialect.ts'
import { readFault } from './errors.ts'
import { parseStream } from './reply/parse.ts'
import { renderRequest } from './request/render.ts'

export const openaiResponses: UpstreamDialect = {
  id: 'openai-responses',
  generationPath: () => '/responses',
  readFault,
  translation: { renderRequest, parseStream },
}
