// Keys of providers that a workspace brings: written, replaced, deleted, and listed by their last four characters.

import { z } from 'zod'
import { Failure, invalidRequest } from '../../kernel/failure.ts'
import type { WorkspaceId } from '../../kernel/ids.ts'
import { Secret } from '../../kernel/secret.ts'
import type { CredentialFault, OwnCredential } from '../../providers/signing/own-credential.ts'
import type { Database } from '../../store/database.ts'
import type { Sql } from '../../store/sql.ts'
import { appendAudit } from '../../tenancy/audit.ts'
import type { CredentialSummary, NewCredential } from '../../tenancy/credentials/credential.ts'
import { getWorkspace } from '../../tenancy/workspaces.ts'
import { credentialAnswer, credentialSchema } from './answers.ts'
import { must } from './fields.ts'
import { listAnswer, listSchema } from './paging.ts'
import { defineRoute, notFound, type Route } from './route.ts'

/** Where a credential may be sent. */
export interface CredentialDestination {
  readonly origin: string
  /** undefined = the provider's own. */
  readonly baseUrl: string | undefined
}

export interface Credentials {
  /** A Failure where there is no such provider, or the base URL may not be called. May ask the DNS. */
  destinationOf(provider: string, baseUrl: string | undefined): Promise<CredentialDestination | Failure>
  /** What is stored of a credential for a provider that has a destination, or why it cannot be one. */
  read(provider: string, text: string): OwnCredential | CredentialFault
  put(sql: Sql, credential: NewCredential): Promise<CredentialSummary>
  /** False: there was none. */
  delete(sql: Sql, workspaceId: WorkspaceId, provider: string): Promise<boolean>
  list(sql: Sql, workspaceId: WorkspaceId): Promise<readonly CredentialSummary[]>
  /** After a change was committed. */
  forget(workspaceId: WorkspaceId): void
}

export interface CredentialDependencies {
  readonly database: Database
  readonly credentials: Credentials
}

export function credentialRoutes({ database, credentials }: CredentialDependencies): readonly Route[] {
  const isMissing = async (id: WorkspaceId) => (await getWorkspace(database.sql, id)) === 'not found'
  return [
    defineRoute({
      method: 'GET',
      path: '/api/workspaces/{id}/credentials',
      kind: 'workspace',
      operation: 'listCredentials',
      summary: "Lists the workspace's own provider keys, by their last four characters.",
      answer: listSchema(credentialSchema),
      status: 200,
      async run({ id }) {
        if (await isMissing(id)) return notFound('workspace', id)
        return listAnswer((await credentials.list(database.sql, id)).map(credentialAnswer), undefined)
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/workspaces/{id}/credentials/{provider}',
      kind: 'workspace',
      operation: 'getCredential',
      summary: "Reads what may be shown of the workspace's key for a provider.",
      answer: credentialSchema,
      status: 200,
      async run({ id, provider }) {
        if (await isMissing(id)) return notFound('workspace', id)
        const found = (await credentials.list(database.sql, id)).find((credential) => credential.provider === provider)
        return found === undefined ? noCredential(provider) : credentialAnswer(found)
      },
    }),
    putCredential({ database, credentials }),
    defineRoute({
      method: 'DELETE',
      path: '/api/workspaces/{id}/credentials/{provider}',
      kind: 'workspace',
      operation: 'deleteCredential',
      summary: "Deletes the workspace's key for a provider.",
      status: 204,
      async write(sql, { id, provider, act }) {
        if ((await getWorkspace(sql, id)) === 'not found') return notFound('workspace', id)
        if (!(await credentials.delete(sql, id, provider))) return noCredential(provider)
        await appendAudit(sql, { ...act, action: 'credential.delete', object: id, details: { provider } })
        return undefined
      },
      committed: ({ id }) => credentials.forget(id),
    }),
  ]
}

function putCredential({ database, credentials }: CredentialDependencies): Route {
  return defineRoute({
    method: 'PUT',
    path: '/api/workspaces/{id}/credentials/{provider}',
    kind: 'workspace',
    operation: 'putCredential',
    summary: "Stores or replaces the workspace's own key for a provider; it can never be read back.",
    body: z.strictObject({
      api_key: z
        .string(must("the provider's key"))
        .describe("The provider's key; of a Google service account, its JSON key file as one text."),
      base_url: z
        .string(must('a URL'))
        .max(2000, must('a URL'))
        .nullish()
        .describe("Where to call instead of the provider's own address."),
    }),
    example: { api_key: 'sk-of-the-provider' },
    answer: credentialSchema,
    status: 200,
    // Not a `write`: names are looked up on the way, and a transaction must not wait for that.
    async run({ id, provider, body, act }) {
      if ((await getWorkspace(database.sql, id)) === 'not found') return notFound('workspace', id)
      const destination = await credentials.destinationOf(provider, body.base_url ?? undefined)
      if (destination instanceof Failure) return destination
      const { origin, baseUrl } = destination
      const read = credentials.read(provider, body.api_key)
      if ('fault' in read) return invalidRequest(`\`api_key\` ${read.fault}.`, 'api_key')
      const credential: NewCredential = {
        workspaceId: id,
        provider,
        apiKey: new Secret(read.text),
        ...(read.name === undefined ? {} : { name: read.name }),
        origin,
        ...(baseUrl === undefined ? {} : { baseUrl }),
        storedAt: act.at,
      }
      const stored = await database.transaction(async (sql) => {
        const summary = await credentials.put(sql, credential)
        const details = { provider, credential: summary.id, last4: summary.last4, origin }
        await appendAudit(sql, { ...act, action: 'credential.put', object: id, details })
        return summary
      })
      return credentialAnswer(stored)
    },
    committed: ({ id }) => credentials.forget(id),
  })
}

function noCredential(provider: string): Failure {
  return new Failure('NOT_FOUND', `The workspace has no credential for the provider ${provider}.`)
}
