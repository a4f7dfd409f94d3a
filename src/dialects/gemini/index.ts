// Google's generateContent, used for calling providers only; callers cannot use it.

import type { UpstreamDialect } from '../dialect.ts'
import { readFault } from './errors.ts'
import { parseStream } from './reply/parse.ts'
import { renderRequest } from './request/render.ts'

export const gemini: UpstreamDialect = {
  id: 'gemini',
  /** Base URLs end in the version, such as /v1beta. */
  generationPath: (upstreamModel, isStreamed) =>
    `/models/${upstreamModel}:${isStreamed ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
  readFault,
  translation: { renderRequest, parseStream },
}
