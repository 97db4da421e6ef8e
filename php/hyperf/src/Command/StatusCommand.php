<?php

declare(strict_types=1);

namespace Redlock\Hyperf\Command;

use Hyperf\Command\Command;
use Redlock\Hyperf\Locks;
use Redlock\ResourceStatus;
use Redlock\Verdict;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputOption;

final class StatusCommand extends Command
{
    protected ?string $name = 'redlock:status';

    protected string $description = 'Asks every node who holds a resource';

    public function __construct(private readonly Locks $locks)
    {
        parent::__construct();
    }

    public function configure(): void
    {
        parent::configure();
        $this->addArgument('resource', InputArgument::REQUIRED, 'the resource, as the attribute makes it');
        $this->addOption('cluster', null, InputOption::VALUE_REQUIRED, 'a cluster of config/autoload/redlock.php',
            'default');
        $this->addOption('permits', null, InputOption::VALUE_REQUIRED, 'how many may hold it at a time');
    }

    public function handle(): int
    {
        $client = $this->locks->client($this->input->getOption('cluster'));
        $permits = $this->input->getOption('permits');
        $options = $permits === null ? [] : ['permits' => $permits];
        $status = $client->lockFromArray($this->input->getArgument('resource'), $options)->status();
        $rows = [];
        foreach ($status->nodes as $node => $answer) {
            $rows[] = [$node, $answer['words'], \substr($answer['token'], 0, 8), $answer['ttl_ms']];
        }
        foreach ($status->parts as $slot => $part) {
            $rows[] = [$slot, self::said($part), \substr((string) $part->token, 0, 8), $part->remainingMs];
        }
        $this->table([$status->parts === [] ? 'node' : 'permit', 'answer', 'token', 'ms left'], $rows);
        $this->line(self::said($status) . ": $status->message");
        return $status->verdict === Verdict::Unknown ? self::FAILURE : self::SUCCESS;
    }

    private static function said(ResourceStatus $status): string
    {
        return $status->verdict->value . ($status->heldBy === null ? ''
            : ' by ' . ResourceStatus::words($status->heldBy));
    }
}
