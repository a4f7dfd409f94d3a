// Which providers are switched on: built-in ones whose usual variable is set, the sandbox, and those of the
// configuration file, which replace a built-in one of the same id.

import type { DialectId } from '../dialects/dialect.ts'
import type { Secret } from '../kernel/secret.ts'
import { alibaba } from './data/alibaba.ts'
import { anthropic } from './data/anthropic.ts'
import { cerebras } from './data/cerebras.ts'
import { cohere } from './data/cohere.ts'
import { deepseek } from './data/deepseek.ts'
import { fireworks } from './data/fireworks.ts'
import { groq } from './data/groq.ts'
import { huggingface } from './data/huggingface.ts'
import { minimax } from './data/minimax.ts'
import { mistral } from './data/mistral.ts'
import { moonshot } from './data/moonshot.ts'
import { nvidia } from './data/nvidia.ts'
import { openai } from './data/openai.ts'
import { openrouter } from './data/openrouter.ts'
import { perplexity } from './data/perplexity.ts'
import { together } from './data/together.ts'
import { xai } from './data/xai.ts'
import { zai } from './data/zai.ts'
import type { ProviderEntry } from './entry.ts'
import type { AuthScheme, Provider, ProviderData, Transport } from './provider.ts'
import { createSandboxProvider, sandboxId } from './sandbox/provider.ts'

/** The two whose dialects we speak, then by name. */
export const builtInProviders: readonly ProviderData[] = [
  anthropic,
  openai,
  alibaba,
  cerebras,
  cohere,
  deepseek,
  fireworks,
  groq,
  huggingface,
  minimax,
  mistral,
  moonshot,
  nvidia,
  openrouter,
  perplexity,
  together,
  xai,
  zai,
]

/** Ids that routes may name although no file defines them. */
export const builtInProviderIds: readonly string[] = [...builtInProviders.map(({ id }) => id), sandboxId]

/** How a provider of the file is authenticated when it speaks this dialect. */
const authOfDialect: Readonly<Record<DialectId, AuthScheme>> = {
  'openai-chat': 'bearer',
  'anthropic-messages': 'x-api-key',
}

export interface ProvidersInput {
  readonly entries: readonly ProviderEntry[]
  /** By variable. */
  readonly keys: Readonly<Record<string, Secret>>
  readonly sandboxOn: boolean
  readonly sandboxTransport: Transport
}

export function createProviders(input: ProvidersInput): ReadonlyMap<string, Provider> {
  const providers = new Map<string, Provider>()
  const add = (provider: Provider): void => void providers.set(provider.id, provider)
  if (input.sandboxOn) add(createSandboxProvider(sandboxId, 'built in', input.sandboxTransport))
  for (const { id, variable, endpoints } of builtInProviders) {
    const apiKey = input.keys[variable]
    if (apiKey) add({ id, endpoints, apiKey, source: variable })
  }
  for (const entry of input.entries) add(providerFromEntry(entry, input.sandboxTransport))
  return providers
}

function providerFromEntry(entry: ProviderEntry, sandboxTransport: Transport): Provider {
  const { id, dialect, baseUrl, apiKey, source } = entry
  if (dialect === sandboxId || baseUrl === undefined) return createSandboxProvider(id, source, sandboxTransport)
  const auth = apiKey === undefined ? 'none' : authOfDialect[dialect]
  return { id, endpoints: [{ dialect, baseUrl, auth }], apiKey, source }
}
