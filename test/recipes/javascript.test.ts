// The recipes of npm's clients, through both surfaces onto both dialects.

import { javascriptClients } from './clients.ts'
import { describeClients } from './describe-client.ts'

describeClients(javascriptClients())
