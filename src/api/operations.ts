// All operations of the management API by name. A new one is a line in endpoints.ts, a row in the file of its resource
// and a handler in src/http/management; a test names the documents that lack it.

import { alertOperations } from './alerts.ts'
import { batchOperations } from './batches.ts'
import { billOperations } from './bills.ts'
import { catalogOperations } from './catalog.ts'
import { endpoints, type OperationName } from './endpoints.ts'
import { groupOperations } from './groups.ts'
import { type Definition, kindIn, type Operation } from './operation.ts'
import { peopleOperations } from './people.ts'
import { planOperations } from './plans.ts'
import { keyOperations, projectOperations } from './projects.ts'
import { credentialOperations, providerOperations } from './providers.ts'
import { requestOperations } from './requests.ts'
import { signInOperations } from './sign-ins.ts'
import { subjectLimitOperations } from './subject-limits.ts'
import { systemOperations } from './system.ts'
import { walletOperations } from './wallet.ts'
import { workspaceOperations } from './workspaces.ts'

const definitions = {
  ...workspaceOperations,
  ...walletOperations,
  ...planOperations,
  ...projectOperations,
  ...groupOperations,
  ...subjectLimitOperations,
  ...keyOperations,
  ...credentialOperations,
  ...providerOperations,
  ...catalogOperations,
  ...requestOperations,
  ...batchOperations,
  ...billOperations,
  ...alertOperations,
  ...peopleOperations,
  ...signInOperations,
  ...systemOperations,
} satisfies Readonly<Record<OperationName, Definition>>

export type Operations = { readonly [Name in OperationName]: (typeof definitions)[Name] & Operation }

/** In the order of `endpoints`, in which requests are matched. */
export const operations = Object.fromEntries(
  (Object.keys(endpoints) as OperationName[]).map((name) => {
    const [method, path] = endpoints[name]
    return [name, { name, method, path, kind: kindIn(path), status: 200, ...definitions[name] }]
  }),
) as unknown as Operations
