// Finds programs that serve models on this machine, and what they serve right now. It asks loopback alone, only for a
// list, and takes whatever goes wrong for "nobody there"; generations go through call-endpoint like everybody's.

import type { ModelEntry } from '../catalog/entry.ts'
import { readResponseBody } from '../wire/read-body.ts'
import { type LocalServerData, localServers } from './data/local-servers.ts'
import type { Provider } from './provider.ts'

export interface LocalServer {
  readonly provider: Provider
  /** Free of charge, one for each installed model, under `<provider>/<name>`. */
  readonly models: readonly ModelEntry[]
}

export interface LocalSearch {
  /** Nobody is asked there: our own, and those of providers that the operator has configured. */
  readonly exceptPorts: readonly number[]
  /** Ends the search; what has answered by then counts. */
  readonly signal: AbortSignal
  readonly servers?: readonly LocalServerData[]
}

const listBytesMax = 1_048_576
const modelsMax = 500
/** What may follow the slash of a model's id, apart from its length. */
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

/** undefined = nobody there, or somebody else. */
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
    // Refused, cut off, too slow, or not JSON: in each case no server that we know.
    return undefined
  }
  const models = modelsOf(list)
  if (models === undefined || models.some((model) => ownedBy !== undefined && model.ownedBy !== ownedBy))
    return undefined
  const names = models.map(({ name }) => name).filter((name) => nameCharacters.test(name.replaceAll('/', '--')))
  return [...new Set(names)].slice(0, modelsMax)
}

interface ListedModel {
  readonly name: string
  readonly ownedBy: unknown
}

function modelsOf(list: unknown): readonly ListedModel[] | undefined {
  if (!isObject(list) || list.object !== 'list') return undefined
  // A server without any model says null instead of an empty list.
  const items = list.data ?? []
  if (!Array.isArray(items)) return undefined
  return items.flatMap((item: unknown) =>
    isObject(item) && typeof item.id === 'string' ? [{ name: item.id, ownedBy: item.owned_by }] : [],
  )
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
