// Finds model servers on this machine and the models they serve. Calls only loopback addresses, only for the model list, and
// treats any failure as no server.

import type { ModelEntry } from '../catalog/entry.ts'
import { isRecord } from '../dialects/canonical/json.ts'
import type { TargetRules } from '../dialects/canonical/target-rules.ts'
import { readResponseBody } from '../wire/read-body.ts'
import type { Provider } from './provider.ts'

export interface LocalServer {
  readonly provider: Provider
  /** Free of charge, one for each installed model, under `<provider>/<name>`. */
  readonly models: readonly ModelEntry[]
}

export interface LocalSearch {
  /** Ports that are not probed: our own, and those of providers that the operator has configured. */
  readonly exceptPorts: readonly number[]
  /** Ends the search; servers that have answered by then count. */
  readonly signal: AbortSignal
  readonly servers?: readonly LocalServerData[]
}

const listBytesMax = 1_048_576
const modelsMax = 500
/** The characters that may follow the slash of a model's id. */
const nameCharacters = /^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}$/

export async function findLocalServers(search: LocalSearch): Promise<readonly LocalServer[]> {
  const { servers = localServers, exceptPorts, signal } = search
  const asked = servers.filter(({ port }) => !exceptPorts.includes(port))
  const answers = await Promise.all(asked.map((server) => askForModels(server, signal)))
  return answers.filter((answer) => answer !== undefined)
}

async function askForModels(server: LocalServerData, signal: AbortSignal): Promise<LocalServer | undefined> {
  const { id, port, rules } = server
  const baseUrl = `http://127.0.0.1:${port}/v1`
  const names = await readNames(`${baseUrl}/models`, server, signal)
  if (names === undefined) return undefined
  return {
    provider: {
      id,
      endpoints: [{ dialect: 'openai-chat', baseUrl, auth: 'none', rules }],
      apiKey: undefined,
      source: `127.0.0.1:${port}`,
    },
    models: names.map((name) => ({
      id: `${id}/${name.replaceAll('/', '--')}`,
      name,
      price: 'free',
      routes: [{ provider: id, model: name }],
    })),
  }
}

/** undefined = no server, or another program. */
async function readNames(
  url: string,
  { ownedBy }: LocalServerData,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  let list: unknown
  try {
    const response = await fetch(url, { signal, redirect: 'manual', headers: { 'user-agent': 'tollgate' } })
    if (response.status !== 200) return undefined
    const body = await readResponseBody(response, listBytesMax)
    if (body === 'too-large') return undefined
    list = JSON.parse(new TextDecoder().decode(body))
  } catch {
    // Refused, broken, slow or not JSON: not a known server.
    return undefined
  }
  const models = modelsOf(list)
  if (models === undefined || models.some((model) => ownedBy !== undefined && model.ownedBy !== ownedBy))
    return undefined
  const names = models.map(({ name }) => name).filter((name) => nameCharacters.test(name.replaceAll('/', '--')))
  return [...new Set(names)].slice(0, modelsMax)
}

function modelsOf(list: unknown): readonly { readonly name: string; readonly ownedBy: unknown }[] | undefined {
  if (!isRecord(list) || list.object !== 'list') return undefined
  // A server without models returns null instead of an empty list.
  const items = list.data ?? []
  if (!Array.isArray(items)) return undefined
  return items.flatMap((item: unknown) =>
    isRecord(item) && typeof item.id === 'string' ? [{ name: item.id, ownedBy: item.owned_by }] : [],
  )
}

// The known servers, each on its default port. Their models are whatever is installed.

export interface LocalServerData {
  readonly id: string
  readonly port: number
  /** `owned_by` in its list of models; set where other programs use the same port. */
  readonly ownedBy?: string
  readonly rules: TargetRules
}

const chat: TargetRules = { outputCapName: 'max_tokens', systemRole: 'system' }

export const localServers: readonly LocalServerData[] = [
  // https://www.developersdigest.tech/reference/api-compatibility/ollama, 2026-11
  { id: 'ollama', port: 11434, rules: { ...chat, logitBias: false } },
  // https://lmstudio.ai/docs/developer/openai-compat/chat-completions, 2026-06
  { id: 'lmstudio', port: 1234, rules: { ...chat, topK: true } },
  // https://www.developersdigest.tech/reference/api-compatibility/vllm, 2026-11
  { id: 'vllm', port: 8000, ownedBy: 'vllm', rules: { ...chat, topK: true } },
  // https://github.com/ggml-org/llama.cpp/tree/master/tools/server, 2025-12. An assistant message must have a content
  // that is a string (browser-use/browser-use#1635).
  { id: 'llamacpp', port: 8080, ownedBy: 'llamacpp', rules: { ...chat, topK: true, emptyContent: 'string' } },
]
