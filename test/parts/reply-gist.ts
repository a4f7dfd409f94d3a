// For the tests of this folder: what a reply amounts to, read off a whole body of either dialect, so that one
// expectation serves both.

export interface Gist {
  text: string
  thinking: string
  calls: { name: string; input: unknown }[]
  stop: string
  in: number
  cacheRead: number
  cacheWrite: number
  out: number
}

interface ChatBody {
  choices: [
    {
      message: {
        content: string | null
        reasoning_content?: string
        tool_calls?: { function: { name: string; arguments: string } }[]
      }
      finish_reason: string
    },
  ]
  usage: {
    prompt_tokens: number
    completion_tokens: number
    prompt_tokens_details: { cached_tokens: number; cache_write_tokens: number }
  }
}

export function gistOfChat({ choices: [{ message, finish_reason }], usage }: ChatBody): Gist {
  const { cached_tokens, cache_write_tokens } = usage.prompt_tokens_details
  const calls = (message.tool_calls ?? []).map((call) => call.function)
  return {
    text: message.content ?? '',
    thinking: message.reasoning_content ?? '',
    calls: calls.map((call) => ({ name: call.name, input: JSON.parse(call.arguments) })),
    stop: finish_reason,
    in: usage.prompt_tokens - cached_tokens - cache_write_tokens,
    cacheRead: cached_tokens,
    cacheWrite: cache_write_tokens,
    out: usage.completion_tokens,
  }
}

interface MessageBody {
  content: { type: string; text?: string; thinking?: string; name?: string; input?: unknown }[]
  stop_reason: string
  usage: Record<'input_tokens' | 'cache_read_input_tokens' | 'cache_creation_input_tokens' | 'output_tokens', number>
}

export function gistOfMessage({ content, stop_reason, usage }: MessageBody): Gist {
  const uses = content.filter((block) => block.type === 'tool_use')
  return {
    text: content.map((block) => block.text ?? '').join(''),
    thinking: content.map((block) => block.thinking ?? '').join(''),
    calls: uses.map(({ name = '', input }) => ({ name, input })),
    stop: stop_reason,
    in: usage.input_tokens,
    cacheRead: usage.cache_read_input_tokens,
    cacheWrite: usage.cache_creation_input_tokens,
    out: usage.output_tokens,
  }
}
