// Google's generateContent, as we speak it to providers. No caller speaks it, so there is nothing here to serve one.

import type { UpstreamDialect } from '../dialect.ts'
import { readFault } from './failure.ts'
import { parseStream } from './parse-stream.ts'
import { renderRequest } from './render-request.ts'
import { replyAsStream } from './reply-as-stream.ts'

export const gemini: UpstreamDialect = {
  id: 'gemini',
  /** Endpoints end in the version, such as /v1beta. */
  generationPath: (upstreamModel: string) => `/models/${upstreamModel}:streamGenerateContent?alt=sse`,
  replyAsStream,
  readFault,
  translation: { renderRequest, parseStream },
}
