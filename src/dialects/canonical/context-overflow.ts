// How providers say that a prompt does not fit into the model, with the counts they give. Every host has words of its
// own, under any dialect and any status, so all are read alike. To add one: a row with the words and who uses them, and
// a sentence of theirs in the test.

import type { ContextOverflow } from '../../kernel/failure.ts'
import type { ProviderFault } from './provider-fault.ts'

/** The code or type alone tells. */
const overflowWords = /^(context_length_exceeded|exceed_context_size_error|model_context_window_exceeded)$/

/**
 * `tokens` is all that was asked for, `input` and `cap` are its two parts, `limit` is what the model takes. More
 * telling rows stand first.
 */
const phrases: readonly RegExp[] = [
  // Anthropic
  /prompt is too long: (?<tokens>\d+) tokens > (?<limit>\d+)/i,
  /input length and `?max_tokens`? exceed context limit: (?<input>\d+) \+ (?<cap>\d+) > (?<limit>\d+)/i,
  /prompt is too long/i,
  // OpenAI, DeepSeek, OpenRouter, SGLang, older vLLM
  /maximum context length is (?<limit>[\d,]+)[\s\S]{0,60}?requested (?:about )?(?<tokens>[\d,]+) tokens \((?<input>[\d,]+) [^),]{0,60}, (?<cap>[\d,]+) /i,
  /maximum context length is (?<limit>[\d,]+)[\s\S]{0,60}?(?:resulted in|requested|requested about) (?<tokens>[\d,]+) tokens/i,
  // vLLM
  /maximum context length is (?<limit>[\d,]+)[\s\S]{0,60}?requested (?<cap>\d+) output tokens[\s\S]{0,60}?(?<input>\d+) input tokens/i,
  /(?<!\d)(?<cap>\d{1,12})\. This model's maximum context length is (?<limit>\d+) tokens and your request has (?<input>\d+) input/i,
  // OpenAI, from GPT-5 on
  /configured limit of (?<limit>[\d,]+) tokens\. Your messages resulted in (?<tokens>[\d,]+) tokens/i,
  /exceeds? the context window/i,
  // xAI
  /maximum prompt length is (?<limit>\d+) but the request contains (?<tokens>\d+)/i,
  // Google
  /input token count \(?(?<tokens>\d+)\)? exceeds the maximum number of tokens allowed \(?(?<limit>\d+)/i,
  /input token count.{0,20} exceeds the maximum/i,
  // llama.cpp
  /request \((?<tokens>\d+) tokens\) exceeds the available context size \((?<limit>\d+)/i,
  /exceeds? the available context size/i,
  // Hosts of open models: Fireworks, NVIDIA, Moonshot, Mistral, Together
  /input length \(?(?<tokens>\d+)\)? exceeds[\s\S]{0,40}? maximum (?:context|allowed input) length \(?(?:of )?(?<limit>\d+)/i,
  /input \((?<tokens>\d+) tokens\) is longer than the model's context length \((?<limit>\d+)/i,
  /exceeded model token limit: (?<limit>\d+) \(requested: (?<tokens>\d+)\)/i,
  /(?<!\d)(?<tokens>\d{1,12}) tokens[\s\S]{0,40}? too large for model with (?<limit>\d+) maximum context length/i,
  /`inputs` tokens \+ `max_new_tokens` must be/i,
  /(?:exceeds?|exceeded) (?:the |this |the model's |model's )?(?:maximum )?context length/i,
  /maximum context length is \d/i,
  // Bedrock, which counts tokens or bytes (strands-agents/harness-sdk#1663, 2026-02)
  /input is too long for requested model/i,
  /too many total text bytes/i,
  // Many, in front of or behind the words above
  /\bcontext_length_exceeded\b/,
]

/** undefined = it says something else. */
export function readOverflow({ type, code, message }: ProviderFault): ContextOverflow | undefined {
  for (const phrase of phrases) {
    const found = phrase.exec(message)
    if (found) return countsOf(found.groups ?? {})
  }
  return overflowWords.test(code ?? '') || overflowWords.test(type ?? '') ? {} : undefined
}

function countsOf(groups: Readonly<Record<string, string | undefined>>): ContextOverflow {
  const count = (name: string) => (groups[name] === undefined ? undefined : Number(groups[name].replaceAll(',', '')))
  const [input, outputCap, limit] = [count('input'), count('cap'), count('limit')]
  const tokens = count('tokens') ?? (input === undefined ? undefined : input + (outputCap ?? 0))
  return {
    ...(tokens === undefined ? {} : { tokens }),
    ...(limit === undefined ? {} : { limit }),
    ...(outputCap === undefined ? {} : { outputCap }),
  }
}
