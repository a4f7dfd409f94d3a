import { afterEach, describe, expect, test } from 'bun:test'
import { modelEntrySchema } from '../catalog/entry.ts'
import { findLocalServers, type LocalServer, type LocalServerData, localServers } from './local.ts'

const servers: { stop(closeActive: boolean): unknown }[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.stop(true)
})

/** A program on a free port of this machine. */
function serve(answer: (request: Request) => Response | Promise<Response>): number {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: answer })
  servers.push(server)
  return server.port ?? 0
}

const list = (...models: object[]) => Response.json({ object: 'list', data: models })
const acme = (port: number, facts: Partial<LocalServerData> = {}): LocalServerData => ({
  id: 'acme',
  port,
  rules: { outputCapName: 'max_tokens' },
  ...facts,
})
const never = new AbortController().signal

function find(...data: LocalServerData[]): Promise<readonly LocalServer[]> {
  return findLocalServers({ servers: data, exceptPorts: [], signal: never })
}

describe('a server that lists its models', () => {
  test('is a provider without a key, its models free and called by their own names', async () => {
    let asked = ''
    const port = serve((request) => {
      asked = `${request.method} ${new URL(request.url).pathname}`
      return list({ id: 'llama3.2:3b', object: 'model', owned_by: 'library' }, { id: 'Qwen/Qwen3-8B', object: 'model' })
    })
    const [found, ...others] = await find(acme(port))
    expect(others).toEqual([])
    expect(asked).toBe('GET /v1/models')
    expect(found?.provider).toEqual({
      id: 'acme',
      endpoints: [
        {
          dialect: 'openai-chat',
          baseUrl: `http://127.0.0.1:${port}/v1`,
          auth: 'none',
          rules: { outputCapName: 'max_tokens' },
        },
      ],
      apiKey: undefined,
      source: `127.0.0.1:${port}`,
    })
    expect(found?.models).toEqual([
      {
        id: 'acme/llama3.2:3b',
        name: 'llama3.2:3b',
        price: 'free',
        routes: [{ provider: 'acme', model: 'llama3.2:3b' }],
      },
      {
        id: 'acme/Qwen--Qwen3-8B',
        name: 'Qwen/Qwen3-8B',
        price: 'free',
        routes: [{ provider: 'acme', model: 'Qwen/Qwen3-8B' }],
      },
    ])
  })

  test('gives entries that the configuration file would take, whatever its models are called', async () => {
    const names = ['ok', 'with space', '../etc', '', 'x'.repeat(200), 'a/b/c', 'émile', 'q:4@k_m+v1', 'ok']
    const port = serve(() => list(...names.map((id) => ({ id }))))
    const [found] = await find(acme(port))
    expect(found?.models.map(({ id }) => id)).toEqual(['acme/ok', 'acme/a--b--c', 'acme/q:4@k_m+v1'])
    for (const model of found?.models ?? []) expect(modelEntrySchema.safeParse(model).success).toBe(true)
  })

  test('may have none installed', async () => {
    const port = serve(() => Response.json({ object: 'list', data: null }))
    const [found] = await find(acme(port))
    expect(found?.models).toEqual([])
  })

  test('is one of several, in the order of the list', async () => {
    const first = serve(() => list({ id: 'a' }))
    const second = serve(() => list({ id: 'b' }))
    const found = await find(acme(first), acme(second, { id: 'other' }))
    expect(found.map(({ provider }) => provider.id)).toEqual(['acme', 'other'])
  })
})

describe('finds no server', () => {
  test('if nothing listens', async () => {
    const port = serve(() => list())
    for (const server of servers.splice(0)) server.stop(true)
    expect(await find(acme(port))).toEqual([])
  })

  test.each<[string, () => Response]>([
    ['asks for a key', () => new Response('{}', { status: 401 })],
    ['leads elsewhere', () => Response.redirect('http://127.0.0.1:1/v1/models')],
    ['is a web page', () => new Response('<!doctype html>')],
    ['speaks other JSON', () => Response.json({ models: [] })],
    ['lists no list', () => Response.json({ object: 'list', data: {} })],
    ['is endless', () => new Response(`{"object":"list","data":[${'{"id":"a"},'.repeat(100_000)}{"id":"a"}]}`)],
  ])('where the program %s', async (_, answer) => {
    expect(await find(acme(serve(answer)))).toEqual([])
  })

  test('if another program has the port', async () => {
    const port = serve(() => list({ id: 'a', owned_by: 'tollgate' }))
    expect(await find(acme(port, { ownedBy: 'vllm' }))).toEqual([])
    const right = serve(() => list({ id: 'a', owned_by: 'vllm' }))
    expect(await find(acme(right, { ownedBy: 'vllm' }))).toHaveLength(1)
  })

  test('on a port that is spared, which is not even asked', async () => {
    let asked = 0
    const port = serve(() => {
      asked += 1
      return list({ id: 'a' })
    })
    expect(await findLocalServers({ servers: [acme(port)], exceptPorts: [port], signal: never })).toEqual([])
    expect(asked).toBe(0)
  })

  test('if there is no answer when the search ends', async () => {
    const search = new AbortController()
    const port = serve(() => {
      search.abort()
      return new Promise<Response>(() => {})
    })
    expect(await findLocalServers({ servers: [acme(port)], exceptPorts: [], signal: search.signal })).toEqual([])
  })
})

test('each known server has a distinct name and port', () => {
  expect(localServers.map(({ id, port }) => `${id} ${port}`)).toEqual([
    'ollama 11434',
    'lmstudio 1234',
    'vllm 8000',
    'llamacpp 8080',
  ])
})
