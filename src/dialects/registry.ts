// All dialects, and the APIs that callers can use. ARCHITECTURE.md ("Where do I add …") lists what a new one needs.

import { Failure } from '../kernel/failure.ts'
import { JsonFault, readJson } from '../wire/json.ts'
import { anthropicMessages } from './anthropic-messages/index.ts'
import type { Dialect, Dialects } from './dialect.ts'
import { matchPath } from './gemini/envelope.ts'
import { gemini } from './gemini/index.ts'
import { openaiChat } from './openai-chat/index.ts'
import { openaiResponses } from './openai-responses/index.ts'
import type { ModelPath, Operation, SurfaceName } from './surface.ts'

/**
 * Chat Completions that also takes a body of Responses: Cursor sends one to /v1/chat/completions and expects a chat
 * completion. Such a body is always translated.
 */
const chatTakingResponses: Dialect = {
  ...openaiChat,
  readEnvelope(body, headers, url) {
    const sent = openaiChat.readEnvelope(body, headers, url)
    if (!(sent instanceof Failure) || sent.facts.param !== 'messages') return sent
    const members = readJson(body)
    if (members instanceof JsonFault || members.get('messages') || !members.get('input')) return sent
    const input = openaiResponses.readEnvelope(body, headers, url)
    if (input instanceof Failure) return input
    const wantsStreamUsage = input.members.get('stream_options')?.get('include_usage')?.kind === 'true'
    return { ...input, envelope: { ...input.envelope, wantsStreamUsage, isForeign: true } }
  },
  conversationSpans: (sent) => (sent.envelope.isForeign ? openaiResponses : openaiChat).conversationSpans(sent),
  translation: {
    ...openaiChat.translation,
    parseRequest: (sent, tags) =>
      (sent.envelope.isForeign ? openaiResponses : openaiChat).translation.parseRequest(sent, tags),
  },
}

export const dialects = {
  'openai-chat': chatTakingResponses,
  'anthropic-messages': anthropicMessages,
  gemini,
  'openai-responses': openaiResponses,
} as const satisfies Dialects

/** A dialect that callers can use, and how its requests are recognised. */
export interface SurfaceRow {
  readonly dialect: Dialect
  /** Fixed paths, below /v1; absent = its paths name the model. */
  readonly paths?: { readonly generate: string } & Readonly<Partial<Record<Operation, string>>>
  /** Recognises a complete path that names a model; undefined = the path belongs to another surface. */
  matchPath?(path: string): ModelPath | undefined
  /** Sent by the clients of this API only, so it identifies them on paths that several APIs share. */
  readonly clientHeader?: string
}

export const surfaces = {
  chat: { dialect: chatTakingResponses, paths: { generate: '/chat/completions', embed: '/embeddings' } },
  messages: {
    dialect: anthropicMessages,
    paths: { generate: '/messages', countTokens: '/messages/count_tokens' },
    clientHeader: 'anthropic-version',
  },
  responses: {
    dialect: openaiResponses,
    paths: { generate: '/responses', countTokens: '/responses/input_tokens', compact: '/responses/compact' },
  },
  // Google's clients list models under /v1 since version 3.
  gemini: { dialect: gemini, matchPath, clientHeader: 'x-goog-api-key' },
} as const satisfies Record<SurfaceName, SurfaceRow>

export const surfaceList: readonly SurfaceRow[] = Object.values(surfaces)

/**
 * The path without `/v1`, for example `/chat/completions`. Clients build it differently: some add `/v1` to a base URL that
 * already has it, some leave it out, some end with a slash. All of these are accepted.
 */
export function publicPath(path: string): string {
  let bare = path
  for (let times = 0; times < 2 && bare.startsWith('/v1/'); times++) bare = bare.slice(3)
  return bare.length > 1 && bare.endsWith('/') ? bare.slice(0, -1) : bare
}

/**
 * The dialect of an answer to this path, also where nothing is served: on paths that several families of clients use, a
 * header names the family. `path` as it was sent.
 */
export function surfaceFor(headers: { has(name: string): boolean }, path: string): Dialect {
  const isOf = ({ paths }: SurfaceRow) => paths !== undefined && publicPath(path).startsWith(paths.generate)
  const surface =
    surfaceList.find(({ matchPath }) => matchPath?.(path)) ??
    surfaceList.find(({ clientHeader }) => clientHeader !== undefined && headers.has(clientHeader)) ??
    surfaceList.find(isOf) ??
    surfaces.chat
  return surface.dialect
}
