// The operator's providers, and keys tried at their providers: the operator's own and those that workspaces bring. Nothing
// is changed here, and no key is ever shown.

import { z } from 'zod'
import { Failure } from '../../kernel/failure.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import type { Probe } from '../../routing/probe-provider.ts'
import type { Database } from '../../store/database.ts'
import { getWorkspace } from '../../tenancy/workspaces.ts'
import { listAnswer, listSchema } from './paging.ts'
import { probeAnswer, probeSchema } from './probe-answer.ts'
import { defineRoute, emptyBody, notFound, type Route } from './route.ts'

const origins = ['environment', 'file', 'built_in', 'found'] as const

const providerSchema = z.object({
  id: z.string(),
  origin: z.enum(origins).describe('Where it was switched on; `found`: a model server on this machine.'),
  source: z.string().describe('The variable, the line of the file, or the address where it was found.'),
  last4: z.string().nullable().describe('Of the key; empty for a very short one, null without a key.'),
  address: z.string().nullable().describe('The host that is called; null = none, it answers inside the gateway.'),
  models: z.number().describe('How many models can be called through it.'),
})

export type ShownProvider = z.input<typeof providerSchema>

export interface ProviderDependencies {
  readonly database: Database
  readonly providers: {
    /** Those that are switched on. */
    list(): readonly ShownProvider[]
    /** undefined = it is not switched on. */
    test(provider: string): Promise<Probe | undefined>
    /** Of a workspace's own key; a Failure where there is none, or it cannot be used. */
    testOwn(workspaceId: WorkspaceId, provider: string): Promise<Probe | Failure>
  }
}

export function providerRoutes({ database, providers }: ProviderDependencies): readonly Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/providers',
      operation: 'listProviders',
      summary: 'Lists the providers that are switched on, and where each was switched on.',
      answer: listSchema(providerSchema),
      status: 200,
      run: async () => listAnswer(providers.list(), undefined),
    }),
    defineRoute({
      method: 'POST',
      path: '/api/providers/{provider}/test',
      operation: 'testProvider',
      summary: "Tries the operator's key at a provider, with a call that costs nothing.",
      body: emptyBody,
      answer: probeSchema,
      status: 200,
      async run({ provider, act }) {
        const probe = await providers.test(provider)
        if (probe === undefined) return new Failure('NOT_FOUND', `The provider ${provider} is not switched on.`)
        return probeAnswer(probe, act.at)
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/workspaces/{id}/credentials/{provider}/test',
      kind: 'workspace',
      operation: 'testCredential',
      summary: "Tries the workspace's own key at a provider, with a call that costs nothing.",
      body: emptyBody,
      answer: probeSchema,
      status: 200,
      async run({ id, provider, act }) {
        if ((await getWorkspace(database.sql, id)) === 'not found') return notFound('workspace', id)
        const probe = await providers.testOwn(id, provider)
        return probe instanceof Failure ? probe : probeAnswer(probe, act.at)
      },
    }),
  ]
}
