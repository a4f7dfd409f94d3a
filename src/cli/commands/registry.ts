// Every command. A new one is a definition in one of the files beside this one and a row here.

import type { CommandDefinition } from '../command.ts'
import { verifyCommands } from './audit.ts'
import { configCommands } from './config.ts'
import { connectCommand } from './connect.ts'
import { databaseCommands } from './database.ts'
import { doctorCommand } from './doctor.ts'
import { catalogCommands } from './models.ts'
import { providerCommands } from './providers.ts'
import { requestCommands } from './requests.ts'
import { secretCommands } from './secrets.ts'
import { moneyCommands } from './wallet.ts'
import { tenantCommands } from './workspaces.ts'

export const commands: readonly CommandDefinition[] = [
  ...tenantCommands,
  ...moneyCommands,
  ...catalogCommands,
  ...requestCommands,
  ...verifyCommands,
  doctorCommand,
  ...providerCommands,
  ...configCommands,
  ...secretCommands,
  ...databaseCommands,
  connectCommand,
]
