// Every command over the management API, in the order of the help page. A new one is a definition in a file beside this
// and a line here; a test names what docs/reference/cli.md lacks.

import type { CommandDefinition } from '../command.ts'
import { auditCommands } from './audit.ts'
import { backupCommands } from './backup.ts'
import { configCommands } from './config.ts'
import { connectCommand } from './connect.ts'
import { credentialCommands } from './credentials.ts'
import { doctorCommand } from './doctor.ts'
import { explainCommand } from './explain.ts'
import { keyCommands } from './keys.ts'
import { ledgerVerifyCommand } from './ledger-verify.ts'
import { limitCommands } from './limits.ts'
import { migrateToPostgresCommand } from './migrate-to-postgres.ts'
import { modelsCommand } from './models.ts'
import { priceCommands } from './prices.ts'
import { projectCommands } from './projects.ts'
import { providerCommands } from './providers.ts'
import { requestCommands } from './requests.ts'
import { routeCommand } from './route.ts'
import { secretCommands } from './secrets.ts'
import { usageCommand } from './usage.ts'
import { walletCommands } from './wallet.ts'
import { workspaceCommands } from './workspaces.ts'

export const commands: readonly CommandDefinition[] = [
  ...workspaceCommands,
  ...projectCommands,
  ...keyCommands,
  ...limitCommands,
  ...walletCommands,
  ...credentialCommands,
  modelsCommand,
  ...priceCommands,
  routeCommand,
  ...requestCommands,
  explainCommand,
  usageCommand,
  ...auditCommands,
  ledgerVerifyCommand,
  doctorCommand,
  ...providerCommands,
  ...configCommands,
  ...secretCommands,
  ...backupCommands,
  migrateToPostgresCommand,
  connectCommand,
]
