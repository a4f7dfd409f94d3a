// All dialects, and the APIs that callers can use. A new dialect is an id in dialect.ts and a row in `dialects`; serving
// it to callers is a row in `surfaces`.

import { anthropicMessages } from './anthropic-messages/index.ts'
import type { Dialect, Dialects } from './dialect.ts'
import { gemini } from './gemini/index.ts'
import { openaiChatOrInput } from './openai-chat-input.ts'
import { openaiResponses } from './openai-responses/index.ts'

export const dialects = {
  'openai-chat': openaiChatOrInput,
  'anthropic-messages': anthropicMessages,
  gemini,
  'openai-responses': openaiResponses,
} as const satisfies Dialects

export interface Surface {
  readonly dialect: Dialect
  /** Below /v1, as the next one. */
  readonly path: string
  /** Where it counts tokens, if it does. */
  readonly countPath?: string
  /** Where it shortens conversations, if it does. */
  readonly compactPath?: string
  /** Sent by the clients of this API only, so it identifies them on paths that several APIs share. */
  readonly clientHeader?: string
}

/** By the name that the management API uses. The first one is the default. */
export const surfaces = {
  chat: { dialect: openaiChatOrInput, path: '/chat/completions' },
  messages: {
    dialect: anthropicMessages,
    path: '/messages',
    countPath: '/messages/count_tokens',
    clientHeader: 'anthropic-version',
  },
  responses: {
    dialect: openaiResponses,
    path: '/responses',
    countPath: '/responses/input_tokens',
    compactPath: '/responses/compact',
  },
} as const satisfies Record<string, Surface>

export const surfaceList: readonly Surface[] = Object.values(surfaces)
