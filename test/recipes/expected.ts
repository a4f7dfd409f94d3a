// The expected output of every example of every recipe, worked out from the sandbox's description (docs/sandbox.md): the
// same behind every gate, with the few differences that clients or estimates make.

import type { RecipeClient, Surface } from './client.ts'
import type { GateName } from './gates.ts'

export const exampleNames = [
  ...['text', 'stream', 'tools', 'parallel', 'thinking', 'image', 'structured', 'models', 'count', 'errors'],
] as const

const hello = 'hello from the other side of the gate'
const thinking = 'The user wrote: why is it so\nNothing has to be looked up, so I can answer at once.'
/** 8 words and 4 for the turn at $1 per million, 8 words at $2. */
const cost = 0.000028

export interface Place {
  readonly client: RecipeClient
  readonly surface: Surface
  readonly gate: GateName
}

export function expectedOf(example: string, { client, surface, gate }: Place): unknown {
  switch (example) {
    case 'text':
      return { text: hello, tokens: [12, 8], cost, ...(client.tellsRequestId && { request: 'req' }) }
    case 'stream':
      return {
        text: hello,
        tokens: streamTokens({ client, surface, gate }),
        ...(client.tellsStreamCost && { cost }),
        pieces: 'many',
      }
    case 'tools':
      return { text: `The tool said: it rains in ${client.city ?? 'sandbox'}` }
    case 'parallel':
      return { text: 'The tool said: it rains in sandbox; it is noon in sandbox' }
    case 'thinking':
      return {
        // Google sends thoughts on request only.
        ...((client.asksForThoughts !== false || surface !== 'chat' || gate !== 'gemini') && { thinking }),
        text: 'After some thought: why is it so',
        next: 'After some thought: and then',
      }
    case 'image':
      // 5 words, 4 for the turn, and 256 for an image that has arrived.
      return { text: 'what is in this picture', tokens: [265, 5] }
    case 'structured':
      return { city: 'sandbox', rain: true, celsius: 1 }
    case 'models':
      return ['sandbox/breaks-off', 'sandbox/echo', 'sandbox/think', 'sandbox/throttled', 'sandbox/tools']
    case 'count':
      return { tokens: surface === 'messages' && countsAlike(gate) ? 12 : estimated }
    case 'errors':
      return expectedErrors(client, surface)
  }
  throw new Error(`no such example: ${example}`)
}

/** Whether the provider counts tokens as the messages surface does. */
const countsAlike = (gate: GateName): boolean => gate === 'sandbox' || gate === 'anthropic-messages'

/** Counted here, for want of a provider's count: 3 for the request, 4 for the turn, 1 for each of the 8 words. */
const estimated = 15

/**
 * LangChain reads the input off `message_start`, where a translated stream can only estimate it, and adds up the output
 * of `message_start`, of which the Messages API says 1, and of `message_delta`, which is all of it.
 */
function streamTokens({ client, surface, gate }: Place): number[] {
  if (!client.addsUpUsage || surface !== 'messages') return [12, 8]
  return countsAlike(gate) ? [12, 9] : [estimated, 8]
}

function expectedErrors({ exceptions }: RecipeClient, surface: Surface): unknown {
  const { key, model, limit, broken, tellId } = exceptions
  const id = tellId === 'never' ? [] : ['req']
  // Codes of a failed response are those that clients of Responses know; ours is in its metadata.
  const interrupted = surface === 'responses' ? 'server_error' : 'STREAM_INTERRUPTED'
  return {
    key: [key, 'UNAUTHORIZED', ...id],
    model: [model, 'NOT_FOUND', ...id],
    limit: [limit, 'LIMIT_EXCEEDED', ...id],
    ...(broken !== undefined && { broken: [broken, interrupted, ...(tellId === 'always' ? id : [])] }),
  }
}

/** Leaves out what differs from run to run: ids, how many pieces a text came in, models that no recipe names. */
export function tidy(example: string, printed: unknown): unknown {
  if (example === 'models' && Array.isArray(printed)) {
    const needless = /^sandbox\/(?:cache|down|embed|flaky|slow)$/
    return printed.filter((id) => !needless.test(String(id)))
  }
  return JSON.parse(JSON.stringify(printed), (name: string, value: unknown) => {
    if (typeof value === 'string' && /^req_[0-9A-HJKMNP-TV-Z]{26}$/.test(value)) return 'req'
    if (name === 'pieces') return typeof value === 'number' && value > 1 ? 'many' : value
    return Array.isArray(value) ? value.filter((each) => each !== null) : value
  }) as unknown
}
