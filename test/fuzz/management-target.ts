import fc from 'fast-check'
import { startGateway } from '../parts/gateway.ts'
import { adminHeaders } from '../parts/manage.ts'
import { bodyOf, type Operation, operationsOf } from './open-api-bodies.ts'
import { type FuzzTarget, insist } from './target.ts'

interface Things {
  readonly workspace: string
  readonly project: string
  readonly key: string
}

const hostileIds = [
  '',
  '%00',
  '..',
  '%2e%2e',
  '__proto__',
  "ws_' OR 1=1 --",
  'ws_01',
  `ws_${'0'.repeat(5000)}`,
  'é',
  '%ff',
]

/** The path of an operation with ids that exist, mostly. */
function pathFor({ path }: Operation, things: Things, badId: string | undefined): string {
  const id = path.includes('/workspaces/')
    ? things.workspace
    : path.includes('/projects/')
      ? things.project
      : things.key
  return path.replace('{id}', badId ?? id).replace('{provider}', badId ?? 'acme')
}

/** The whole gateway, so that what the calls lead to is the real thing. */
async function openGateway() {
  const gateway = await startGateway()
  const headers = adminHeaders(gateway.dataFolder)
  const make = async (path: string): Promise<string> => {
    const response = await fetch(gateway.url + path, { method: 'POST', headers, body: '{"name":"fuzzed"}' })
    return ((await response.json()) as { id: string }).id
  }
  const workspace = await make('/api/workspaces')
  const project = await make(`/api/workspaces/${workspace}/projects`)
  const key = await make(`/api/projects/${project}/keys`)
  const document = (await (await fetch(`${gateway.url}/api/openapi.json`)).json()) as object
  return { gateway, headers, document, things: { workspace, project, key } }
}

export const managementTarget: FuzzTarget = {
  name: 'management',
  shareInputs: 400,
  async open() {
    const { gateway, headers, document, things } = await openGateway()
    // Deleting the things that the others are about would end the conversation, and a feed of events never does.
    const operations = operationsOf(document).filter(
      ({ method, path }) => method !== 'DELETE' && !/\/(events|erase)$/.test(path),
    )
    const call = fc.constantFrom(...operations).chain((operation) =>
      fc.record({
        operation: fc.constant(operation),
        body: bodyOf(operation, document),
        badId: fc.option(fc.constantFrom(...hostileIds), { nil: undefined, freq: 8 }),
        query: fc.option(
          fc.constantFrom('?limit=-1', '?limit=1e9', '?cursor=%00', '?limit=1&limit=2', '?x=__proto__'),
          {
            nil: '',
            freq: 5,
          },
        ),
      }),
    )
    const check = async ({ operation, body, badId, query }: FuzzCall): Promise<void> => {
      const response = await fetch(gateway.url + pathFor(operation, things, badId) + query, {
        method: operation.method,
        headers,
        ...(operation.method !== 'GET' && body !== undefined && { body }),
      })
      const text = await response.text()
      insist(response.status >= 200 && response.status < 500, `${response.status} ${text}`)
      if (response.status < 400) return
      const { error } = JSON.parse(text) as { error: { message: string; code: string } }
      insist(/^[A-Z_]+$/.test(error.code) && error.message.length < 2_000, text)
      insist(!text.includes(hostileSecret), `a value is repeated: ${text}`)
    }
    return { property: fc.asyncProperty(call, check), examples: [], close: () => gateway.stop() }
  },
}

interface FuzzCall {
  readonly operation: Operation
  readonly body: string | undefined
  readonly badId: string | undefined
  readonly query: string
}

/** One of the values of hostile bodies; refusals may name fields but not what was in them. */
const hostileSecret = 'swordfish-0123456789'
