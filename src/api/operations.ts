// All operations of the management API by name. A new one is a line in endpoints.ts, a row in the file of its resource
// and a handler in src/http/management; a test names the documents that lack it.

import { alertOperations } from './alerts.ts'
import { catalogOperations } from './catalog.ts'
import type { OperationName } from './endpoints.ts'
import type { Operation } from './operation.ts'
import { peopleOperations } from './people.ts'
import { keyOperations, projectOperations } from './projects.ts'
import { credentialOperations, providerOperations } from './providers.ts'
import { requestOperations } from './requests.ts'
import { systemOperations } from './system.ts'
import { walletOperations } from './wallet.ts'
import { workspaceOperations } from './workspaces.ts'

export const operations = {
  ...workspaceOperations,
  ...walletOperations,
  ...projectOperations,
  ...keyOperations,
  ...credentialOperations,
  ...providerOperations,
  ...catalogOperations,
  ...requestOperations,
  ...alertOperations,
  ...peopleOperations,
  ...systemOperations,
} satisfies { readonly [Name in OperationName]: Operation & { readonly name: Name } }

export type Operations = typeof operations
