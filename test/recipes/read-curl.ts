// Reads the output of the curl recipe, which is the wire itself, into the form that the other recipes print.

interface ChatReply {
  readonly choices: readonly { readonly message: { readonly content: string } }[]
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number; readonly cost: number }
}

interface MessagesReply {
  readonly content: readonly { readonly text: string }[]
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number; readonly cost: number }
}

interface ErrorReply {
  readonly error: { readonly code: string }
}

/** By `surface example`. */
export function readCurl(output: string): Map<string, unknown> {
  const found = new Map<string, unknown>()
  for (const part of output.split(/^== /m).slice(1)) {
    const end = part.indexOf('\n')
    const [surface = '', example = ''] = part.slice(0, end).split(' ')
    const printed = part.slice(end).trim()
    try {
      found.set(`${surface} ${example}`, read(surface === 'chat', example, printed))
    } catch {
      // Not what it should be; the example counts as missing, and the failure shows all that was printed.
    }
  }
  return found
}

function read(isChat: boolean, example: string, printed: string): unknown {
  switch (example) {
    case 'text':
      return gist(isChat, printed)
    case 'stream':
      return isChat ? chatStream(printed) : messagesStream(printed)
    case 'tools':
      return { text: gist(isChat, printed.split('\n').at(-1) ?? '').text }
    case 'image': {
      const { text, tokens } = gist(isChat, printed)
      return { text, tokens }
    }
    case 'structured':
      return JSON.parse(gist(isChat, printed).text)
    case 'models':
      return (JSON.parse(printed) as { data: { id: string }[] }).data.map(({ id }) => id)
    case 'count':
      return { tokens: (JSON.parse(printed) as { input_tokens: number }).input_tokens }
    case 'errors':
      return errors(printed)
  }
}

function gist(isChat: boolean, json: string) {
  if (isChat) {
    const { choices, usage } = JSON.parse(json) as ChatReply
    const tokens = [usage.prompt_tokens, usage.completion_tokens]
    return { text: choices[0]?.message.content ?? '', tokens, cost: usage.cost }
  }
  const { content, usage } = JSON.parse(json) as MessagesReply
  return { text: content[0]?.text ?? '', tokens: [usage.input_tokens, usage.output_tokens], cost: usage.cost }
}

function records(printed: string): unknown[] {
  return [...printed.matchAll(/^data: (\{.*)$/gm)].map(([, json = '']) => JSON.parse(json) as unknown)
}

function chatStream(printed: string) {
  if (!printed.endsWith('data: [DONE]')) throw new Error('the stream has no end')
  const chunks = records(printed) as { choices: { delta: { content?: string } }[]; usage?: ChatReply['usage'] }[]
  const pieces = chunks.flatMap(({ choices }) => choices[0]?.delta.content || [])
  const usage = chunks.at(-1)?.usage
  const tokens = [usage?.prompt_tokens, usage?.completion_tokens]
  return { text: pieces.join(''), tokens, cost: usage?.cost, pieces: pieces.length }
}

function messagesStream(printed: string) {
  const events = records(printed) as { type: string; delta?: { text?: string }; usage?: MessagesReply['usage'] }[]
  if (events.at(-1)?.type !== 'message_stop') throw new Error('the stream has no end')
  const pieces = events.flatMap(({ delta }) => delta?.text ?? [])
  const usage = events.at(-2)?.usage
  const tokens = [usage?.input_tokens, usage?.output_tokens]
  return { text: pieces.join(''), tokens, cost: usage?.cost, pieces: pieces.length }
}

/** Three times the body and, on the next line, the status. */
function errors(printed: string) {
  const lines = printed.split('\n').filter(Boolean)
  const outcome = (at: number) => [lines[at * 2 + 1], (JSON.parse(lines[at * 2] ?? '{}') as ErrorReply).error.code]
  return { key: outcome(0), model: outcome(1), limit: outcome(2) }
}
